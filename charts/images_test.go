package charts_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/mnemo-dev/mnemo/hack/devenv/milvus"
	"github.com/mnemo-dev/mnemo/hack/devenv/postgres"
)

const imageList = "mnemo/images.txt"

// TestImageListIsComplete compares images.txt, which air-gapped installations
// mirror, with the images of every rendering.
func TestImageListIsComplete(t *testing.T) {
	t.Parallel()
	var want []string
	for _, values := range cases(t) {
		// Without the images and the registry that a case sets.
		args := append(slices.Clone(values), "--set", "image.digest=,global.imageRegistry=,postgres.cnpg.imageName=")
		want = append(want, images(parse(t, render(t, args...)))...)
	}
	slices.Sort(want)
	want = slices.Compact(want)
	if *update {
		if err := os.WriteFile(imageList, []byte(strings.Join(want, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, strings.Fields(read(t, imageList))); diff != "" {
		t.Errorf("images.txt (go test ./charts -run ImageList -update): -want +got\n%s", diff)
	}
}

// TestMirroredImages checks that global.imageRegistry renders each image of
// images.txt under the name to which the commands in docs/install.md copy it.
func TestMirroredImages(t *testing.T) {
	t.Parallel()
	const registry = "registry.example.com"
	if !strings.Contains(read(t, "../docs/install.md"), `"registry.example.com/${image#*/}"`) {
		t.Fatal("docs/install.md does not copy each image to registry.example.com/${image#*/}")
	}
	mirrored := map[string]bool{}
	for image := range strings.FieldsSeq(read(t, imageList)) {
		_, name, _ := strings.Cut(image, "/")
		mirrored[registry+"/"+name] = true
		repository, _, _ := strings.Cut(name, ":")
		if !strings.Contains(read(t, "../docs/install.md"), "| `"+repository+"` |") {
			t.Errorf("docs/install.md does not say what uses %s", repository)
		}
	}
	for name, values := range cases(t) {
		args := append(slices.Clone(values), "--set", "image.digest=,postgres.cnpg.imageName=,global.imageRegistry="+registry)
		for _, image := range images(parse(t, render(t, args...))) {
			if !mirrored[image] {
				t.Errorf("%s: image %s is not in the mirror", name, image)
			}
		}
	}
}

// TestDefaultStoresAreTested checks that the chart's images have the versions of
// PostgreSQL and Milvus that the tests run, and that the support matrix states
// them.
func TestDefaultStoresAreTested(t *testing.T) {
	t.Parallel()
	var values struct {
		DemoImages struct{ Postgres, Milvus string } `yaml:"demoImages"`
		Milvus     struct{ Operator struct{ Image string } }
	}
	if err := yaml.Unmarshal([]byte(read(t, "mnemo/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	tested := regexp.MustCompile(`^\d+\.\d+`).FindString(string(postgres.Version))
	docs := read(t, "../docs/install.md")
	for name, c := range map[string]struct{ image, want string }{
		"demoImages.postgres":   {values.DemoImages.Postgres, "docker.io/library/postgres:" + tested},
		"demoImages.milvus":     {values.DemoImages.Milvus, "docker.io/milvusdb/milvus:v" + milvus.Wheel.Version},
		"milvus.operator.image": {values.Milvus.Operator.Image, "docker.io/milvusdb/milvus:v" + milvus.Wheel.Version},
	} {
		if c.image != c.want {
			t.Errorf("%s is %s, want the tested %s", name, c.image, c.want)
		}
	}
	for _, row := range []string{"| PostgreSQL | " + tested + " |", "| Milvus | " + milvus.Wheel.Version + " |"} {
		if !strings.Contains(docs, row) {
			t.Errorf("the support matrix in docs/install.md does not contain %q", row)
		}
	}
}
