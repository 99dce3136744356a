package sbom

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// MediaType is that of the documents.
const MediaType = "application/spdx+json"

// Subject is the subject of a document: an image, or an archive of programs.
type Subject struct {
	// Name is without a tag, Platform as in linux/amd64, Digest that of the image's manifest or of the archive, with its algorithm.
	Name, Version, Platform, Digest string
	// Archive reports whether it is one.
	Archive  bool
	Created  time.Time
	Contents []Component
}

// Document returns the document as JSON. The same subject gives the same bytes.
func Document(s Subject) ([]byte, error) {
	d := writer{doc: &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName:      s.Name + ":" + s.Version + " " + s.Platform,
		DocumentNamespace: "https://gpuslice.dev/spdx/" + s.Name + "/" + s.Digest,
		CreationInfo: &spdx.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "gpuslice-images"}},
			Created:  s.Created.UTC().Format(time.RFC3339),
		},
	}}
	_, short, _ := strings.Cut(s.Digest, ":")
	whole := d.add(Component{Name: s.Name, Version: s.Version, License: Unknown, Digest: short, URL: s.url(), Remark: s.Platform})
	whole.PrimaryPackagePurpose = "CONTAINER"
	if s.Archive {
		whole.PrimaryPackagePurpose = "ARCHIVE"
	}
	d.relate("DOCUMENT", "DESCRIBES", whole.PackageSPDXIdentifier)
	for _, c := range s.Contents {
		p := d.add(c)
		d.relate(whole.PackageSPDXIdentifier, "CONTAINS", p.PackageSPDXIdentifier)
		for _, part := range c.Parts {
			d.relate(p.PackageSPDXIdentifier, "STATIC_LINK", d.add(part).PackageSPDXIdentifier)
		}
	}
	var out bytes.Buffer
	if err := json.Write(d.doc, &out, json.Indent(" "), json.EscapeHTML(false)); err != nil {
		return nil, fmt.Errorf("write document of %s: %w", s.Name, err)
	}
	return out.Bytes(), nil
}

// url is the package URL.
func (s Subject) url() string {
	digest := strings.ReplaceAll(s.Digest, ":", "%3A")
	if s.Archive {
		return "pkg:generic/" + s.Name + "@" + s.Version + "?checksum=" + digest
	}
	return "pkg:oci/" + s.Name[strings.LastIndex(s.Name, "/")+1:] + "@" + digest
}

type writer struct{ doc *spdx.Document }

func (w *writer) add(c Component) *spdx.Package {
	p := &spdx.Package{
		PackageName: c.Name, PackageVersion: c.Version,
		PackageSPDXIdentifier:   common.ElementID(fmt.Sprintf("Package-%d", len(w.doc.Packages))),
		PackageDownloadLocation: Unknown, PackageSourceInfo: c.Remark,
		PackageLicenseConcluded: Unknown, PackageLicenseDeclared: c.License, PackageCopyrightText: Unknown,
		PackageExternalReferences: []*spdx.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: c.URL,
		}},
	}
	if c.Digest != "" {
		p.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: c.Digest}}
	}
	w.doc.Packages = append(w.doc.Packages, p)
	return p
}

func (w *writer) relate(a common.ElementID, how string, b common.ElementID) {
	w.doc.Relationships = append(w.doc.Relationships, &spdx.Relationship{
		RefA: common.DocElementID{ElementRefID: a}, Relationship: how, RefB: common.DocElementID{ElementRefID: b},
	})
}
