package main

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/CycloneDX/cyclonedx-go"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// boms returns the SBOMs of a platform's images, in their order.
func (b *builder) boms(version string, program binary, system string) ([]*cyclonedx.BOM, error) {
	libraries, err := libraryComponents(system)
	if err != nil {
		return nil, err
	}
	weights, err := b.modelComponent()
	if err != nil {
		return nil, err
	}
	boms := make([]*cyclonedx.BOM, len(b.images))
	boms[product] = programBOM(version, program.info, libraries...)
	boms[model] = newBOM(weights, *weights.Components)
	boms[bundled] = programBOM(version, program.info, append(libraries, weights)...)
	return boms, nil
}

// libraryComponents returns the packages of the distribution whose libraries are in an image, and onnxruntime.
func libraryComponents(system string) ([]cyclonedx.Component, error) {
	packages, err := devenv.Packages(system)
	if err != nil {
		return nil, err
	}
	id, version, err := devenv.Distribution()
	if err != nil {
		return nil, err
	}
	var components []cyclonedx.Component
	for _, p := range packages {
		purl := fmt.Sprintf("pkg:deb/%s/%s@%s?arch=%s&distro=%s-%s", id, url.QueryEscape(p.Name), url.QueryEscape(p.Version), p.Arch, id, version)
		components = append(components, component(cyclonedx.ComponentTypeLibrary, p.Name, p.Version, purl))
	}
	const runtime = "onnxruntime"
	purl := "pkg:pypi/" + runtime + "@" + devenv.ONNXRuntimeVersion
	return append(components, component(cyclonedx.ComponentTypeLibrary, runtime, devenv.ONNXRuntimeVersion, purl)), nil
}

// modelComponent returns the model with its files, by the package that contains them.
func (b *builder) modelComponent() (cyclonedx.Component, error) {
	jar, ok := devenv.ModelPackage(b.modelName)
	if !ok {
		return cyclonedx.Component{}, fmt.Errorf("model %s is in no package", b.modelName)
	}
	entries, err := os.ReadDir(b.model)
	if err != nil {
		return cyclonedx.Component{}, fmt.Errorf("list files of the model: %w", err)
	}
	var files []cyclonedx.Component
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(b.model, e.Name()))
		if err != nil {
			return cyclonedx.Component{}, fmt.Errorf("read file of the model: %w", err)
		}
		sum := fmt.Sprintf("%x", sha256.Sum256(content))
		files = append(files, cyclonedx.Component{
			BOMRef: "sha256:" + sum, Type: cyclonedx.ComponentTypeFile, Name: e.Name(),
			Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: sum}},
		})
	}
	purl := fmt.Sprintf("pkg:maven/%s/%s@%s", jar.Group, jar.Name, jar.Version)
	c := component(cyclonedx.ComponentTypeMachineLearningModel, b.modelName, jar.Version, purl)
	c.Components = &files
	return c, nil
}
