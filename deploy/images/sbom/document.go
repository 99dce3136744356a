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

// Image is what a document is about.
type Image struct {
	// Name is without a tag, Platform as in linux/amd64, Digest that of the manifest with its algorithm.
	Name, Version, Platform, Digest string
	Created                         time.Time
	Contents                        []Component
}

// Document returns the image's document as JSON. The same image gives the same bytes.
func Document(i Image) ([]byte, error) {
	d := writer{doc: &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName:      i.Name + ":" + i.Version + " " + i.Platform,
		DocumentNamespace: "https://gpuslice.dev/spdx/" + i.Name + "/" + i.Digest,
		CreationInfo: &spdx.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "gpuslice-images"}},
			Created:  i.Created.UTC().Format(time.RFC3339),
		},
	}}
	_, short, _ := strings.Cut(i.Digest, ":")
	image := d.add(Component{Name: i.Name, Version: i.Version, License: Unknown, Digest: short,
		URL: "pkg:oci/" + i.Name[strings.LastIndex(i.Name, "/")+1:] + "@" + strings.ReplaceAll(i.Digest, ":", "%3A"), Remark: i.Platform})
	image.PrimaryPackagePurpose = "CONTAINER"
	d.relate("DOCUMENT", "DESCRIBES", image.PackageSPDXIdentifier)
	for _, c := range i.Contents {
		p := d.add(c)
		d.relate(image.PackageSPDXIdentifier, "CONTAINS", p.PackageSPDXIdentifier)
		for _, part := range c.Parts {
			d.relate(p.PackageSPDXIdentifier, "STATIC_LINK", d.add(part).PackageSPDXIdentifier)
		}
	}
	var out bytes.Buffer
	if err := json.Write(d.doc, &out, json.Indent(" "), json.EscapeHTML(false)); err != nil {
		return nil, fmt.Errorf("write document of %s: %w", i.Name, err)
	}
	return out.Bytes(), nil
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
