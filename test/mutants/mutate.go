package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// mutant is one change of a source file that a test should notice.
type mutant struct {
	file         string // path
	line, offset int
	from, to     string
}

func (m mutant) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s:%d: %s becomes %s", m.file, m.line, m.from, m.to))
}

// apply returns the source with the change.
func (m mutant) apply(source []byte) []byte {
	return slices.Concat(source[:m.offset], []byte(m.to), source[m.offset+len(m.from):])
}

// operators are what each operator becomes: a comparison is negated, and a bound moved by one.
var operators = map[token.Token][]string{
	token.EQL: {"!="}, token.NEQ: {"=="},
	token.LSS: {"<=", ">="}, token.LEQ: {"<", ">"}, token.GTR: {">=", "<="}, token.GEQ: {">", "<"},
	token.LAND: {"||"}, token.LOR: {"&&"},
	token.ADD: {"-"}, token.SUB: {"+"},
}

// mutantsOf lists the mutants of a file, in the order of its lines.
func mutantsOf(file string, source []byte) ([]mutant, error) {
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("find mutants: %w", err)
	}
	var all []mutant
	add := func(pos token.Pos, from string, to ...string) {
		at := files.Position(pos)
		for _, to := range to {
			all = append(all, mutant{file, at.Line, at.Offset, from, to})
		}
	}
	ast.Inspect(tree, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.BinaryExpr:
			if !hasText(n.X) && !hasText(n.Y) {
				add(n.OpPos, n.Op.String(), operators[n.Op]...)
			}
		case *ast.UnaryExpr:
			if n.Op == token.NOT {
				add(n.OpPos, "!", "")
			}
		case *ast.BranchStmt:
			if n.Label == nil && n.Tok == token.CONTINUE {
				add(n.TokPos, "continue", "break")
			}
		case *ast.Ident:
			if to, ok := map[string]string{"true": "false", "false": "true"}[n.Name]; ok {
				add(n.NamePos, n.Name, to)
			}
		}
		return true
	})
	slices.SortStableFunc(all, func(a, b mutant) int { return a.offset - b.offset })
	return all, nil
}

// hasText reports whether an operand ends in a text: adding texts has no opposite.
func hasText(x ast.Expr) bool {
	if b, ok := x.(*ast.BinaryExpr); ok && b.Op == token.ADD {
		return hasText(b.X) || hasText(b.Y)
	}
	literal, ok := x.(*ast.BasicLit)
	return ok && literal.Kind == token.STRING
}
