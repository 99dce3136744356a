package sbom

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"regexp"
	"runtime/debug"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdxlib"
)

// example is an image with a program that has two modules linked into it, one of them replaced.
func example() Subject {
	info := &buildinfo.BuildInfo{
		GoVersion: "go1.26.0", Path: "github.com/gpuslice/gpuslice/cmd/guard", Main: debug.Module{
			Path: "github.com/gpuslice/gpuslice", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "example.test/Old", Version: "v1.0.0",
				Replace: &debug.Module{Path: "example.test/New", Version: "v2.0.0+incompatible", Sum: "h1:x"}},
			{Path: "example.test/other", Version: "v0.1.0", Sum: "h1:y"},
		},
	}
	program := Program(info, "v1.2.3", "00ff", func(string) string { return "MIT" })
	library := Component{Name: "libc6", Version: "2.36-9", License: "LGPL-2.1-or-later", URL: "pkg:deb/debian/libc6@2.36-9", Digest: "11ee"}
	return Subject{Name: "gpuslice/guard", Version: "v1.2.3", Platform: "linux/amd64", Digest: "sha256:22dd",
		Created: time.Unix(0, 0), Contents: []Component{program, library}}
}

func TestDocument(t *testing.T) {
	t.Parallel()
	t.Run("is valid and lists every part", func(t *testing.T) {
		t.Parallel()
		i := example()
		text, err := Document(i)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := json.Read(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := spdxlib.ValidateDocument(doc); err != nil {
			t.Error(err)
		}
		if doc.SPDXVersion != "SPDX-2.3" || doc.DataLicense != "CC0-1.0" ||
			doc.DocumentNamespace != "https://gpuslice.dev/spdx/gpuslice/guard/sha256:22dd" {
			t.Errorf("the document begins with %s, %s, %s", doc.SPDXVersion, doc.DataLicense, doc.DocumentNamespace)
		}
		described, err := spdxlib.GetDescribedPackageIDs(doc)
		if err != nil || len(described) != 1 {
			t.Errorf("it describes %v, %v", described, err)
		}
		ids := regexp.MustCompile(`^[A-Za-z0-9.-]+$`)
		var names []string
		for _, p := range doc.Packages {
			names = append(names, p.PackageName+"@"+p.PackageVersion)
			if p.FilesAnalyzed || p.PackageDownloadLocation == "" || p.PackageLicenseDeclared == "" || len(p.PackageExternalReferences) != 1 ||
				!ids.MatchString(string(p.PackageSPDXIdentifier)) {
				t.Errorf("package %s lacks something: %+v", p.PackageName, p)
			}
		}
		want := []string{"gpuslice/guard@v1.2.3", "github.com/gpuslice/gpuslice/cmd/guard@v1.2.3",
			"std@1.26.0", "example.test/New@v2.0.0+incompatible",
			"example.test/other@v0.1.0", "libc6@2.36-9"}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("packages (-want +got)\n%s", diff)
		}
		if got, want := doc.Packages[3].PackageExternalReferences[0].Locator, "pkg:golang/example.test/new@v2.0.0%2Bincompatible"; got != want {
			t.Errorf("a module's package URL is %s, want %s", got, want)
		}
		if len(doc.Relationships) != len(doc.Packages) {
			t.Errorf("%d packages have %d relationships", len(doc.Packages), len(doc.Relationships))
		}
		again, err := Document(example())
		if err != nil || !bytes.Equal(text, again) {
			t.Errorf("the same image has another document: %v", err)
		}
	})
	t.Run("an archive is none of a registry", func(t *testing.T) {
		t.Parallel()
		s := example()
		s.Name, s.Archive = "gpuslice", true
		text, err := Document(s)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := json.Read(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		whole := doc.Packages[0]
		if got, want := whole.PackageExternalReferences[0].Locator, "pkg:generic/gpuslice@v1.2.3?checksum=sha256%3A22dd"; got != want ||
			whole.PrimaryPackagePurpose != "ARCHIVE" {
			t.Errorf("it is a %s at %s, want %s", whole.PrimaryPackagePurpose, got, want)
		}
	})
	// It keeps the check itself honest.
	t.Run("a broken one is found", func(t *testing.T) {
		t.Parallel()
		text, err := Document(example())
		if err != nil {
			t.Fatal(err)
		}
		doc, err := json.Read(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		doc.Relationships[0].RefB = common.MakeDocElementID("", "nowhere")
		if spdxlib.ValidateDocument(doc) == nil {
			t.Error("a relationship to nothing is valid")
		}
	})
}

func TestLicenses(t *testing.T) {
	t.Parallel()
	t.Run("are recognized", func(t *testing.T) {
		t.Parallel()
		own, err := os.ReadFile("../../../LICENSE")
		if err != nil {
			t.Fatal(err)
		}
		const mit = "Permission is hereby granted, free of charge, to any person\nobtaining a copy of this software"
		const bsd = "Redistributions in binary form must reproduce the above\n copyright notice"
		for _, tt := range []struct{ text, want string }{
			{string(own), "Apache-2.0"},
			{mit, "MIT"},
			{bsd, "BSD-2-Clause"},
			{bsd + " * Neither the name of the copyright holder", "BSD-3-Clause"},
			{mit + "\n\nApache License\nVersion 2.0", "Apache-2.0 AND MIT"},
			{"all rights reserved", Unknown},
			{"", Unknown},
		} {
			if diff := cmp.Diff(tt.want, Recognise(tt.text)); diff != "" {
				t.Errorf("%.40q (-want +got)\n%s", tt.text, diff)
			}
		}
	})
}
