package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/CycloneDX/cyclonedx-go"
)

// writeSBOM writes a CycloneDX software bill of materials.
func writeSBOM(path string, bom *cyclonedx.BOM) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write SBOM: %w", err)
	}
	defer func() {
		if closeErr := file.Close(); err == nil {
			err = closeErr
		}
	}()
	encoder := cyclonedx.NewBOMEncoder(file, cyclonedx.BOMFileFormatJSON).SetPretty(true)
	if err := encoder.Encode(bom); err != nil {
		return fmt.Errorf("write SBOM %s: %w", path, err)
	}
	return nil
}

// programBOM describes a program by the modules that the Go linker recorded in it, and by the other
// contents of its image.
func programBOM(version string, info *debug.BuildInfo, others ...cyclonedx.Component) *cyclonedx.BOM {
	components := []cyclonedx.Component{module("std", info.GoVersion[len("go"):])}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		components = append(components, module(m.Path, m.Version))
	}
	main := module(info.Main.Path, version)
	main.Type = cyclonedx.ComponentTypeApplication
	return newBOM(main, append(components, others...))
}

func newBOM(main cyclonedx.Component, components []cyclonedx.Component) *cyclonedx.BOM {
	references := make([]string, len(components))
	for i, c := range components {
		references[i] = c.BOMRef
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &main}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: main.BOMRef, Dependencies: &references}}
	return bom
}

func module(path, version string) cyclonedx.Component {
	return component(cyclonedx.ComponentTypeLibrary, path, version, "pkg:golang/"+path+"@"+version)
}

// component identifies a component by its package URL, which vulnerability scanners read.
func component(kind cyclonedx.ComponentType, name, version, purl string) cyclonedx.Component {
	return cyclonedx.Component{BOMRef: purl, Type: kind, Name: name, Version: version, PackageURL: purl}
}
