package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/CycloneDX/cyclonedx-go"
)

// writeSBOM writes a CycloneDX software bill of materials: the modules that the Go
// linker recorded in a program.
func writeSBOM(path, version string, info *debug.BuildInfo) (err error) {
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
	if err := encoder.Encode(sbom(version, info)); err != nil {
		return fmt.Errorf("write SBOM %s: %w", path, err)
	}
	return nil
}

func sbom(version string, info *debug.BuildInfo) *cyclonedx.BOM {
	main := component(cyclonedx.ComponentTypeApplication, info.Main.Path, version)
	components := []cyclonedx.Component{component(cyclonedx.ComponentTypeLibrary, "std", info.GoVersion[len("go"):])}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		components = append(components, component(cyclonedx.ComponentTypeLibrary, module.Path, module.Version))
	}
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

// component identifies a module by its package URL, which vulnerability scanners read.
func component(kind cyclonedx.ComponentType, path, version string) cyclonedx.Component {
	purl := "pkg:golang/" + path + "@" + version
	return cyclonedx.Component{BOMRef: purl, Type: kind, Name: path, Version: version, PackageURL: purl}
}
