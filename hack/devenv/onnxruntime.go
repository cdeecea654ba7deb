package devenv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// ONNXRuntimeVersion is the version of onnxruntime.
const ONNXRuntimeVersion = "1.31.1"

// onnxruntimeWheels contain the shared library, by architecture.
var onnxruntimeWheels = map[string]Wheel{
	"amd64": onnxruntimeWheel("manylinux_2_28_x86_64", "5752bd508126ae7c49894d3b9d2e83f0c3d487319246d04c444b393308d7ad7f"),
	"arm64": onnxruntimeWheel("manylinux_2_28_aarch64", "da05378364c44d4407e463982d2bf8d5e4cfea873283757e48beeb41df97b7f3"),
}

func onnxruntimeWheel(platform, sum string) Wheel {
	return Wheel{Name: "onnxruntime", Version: ONNXRuntimeVersion, Python: "3.11", Platform: platform, SHA256: sum}
}

// ONNXRuntime returns a directory with the shared library libonnxruntime.so.1 and its
// licenses, for an architecture. It downloads them if they are not cached.
func ONNXRuntime(ctx context.Context, cache *Cache, arch string) (string, error) {
	wheel, ok := onnxruntimeWheels[arch]
	if !ok {
		return "", fmt.Errorf("there is no onnxruntime package for %s", arch)
	}
	return cache.Ensure(ctx, Entry{
		Key:   "onnxruntime-" + wheel.Version + "-" + arch,
		Title: "onnxruntime " + wheel.Version,
		Doing: "downloading 24 MB with pip, once",
		Space: 200 << 20,
		Fill:  func(ctx context.Context, dir string) error { return fillONNXRuntime(ctx, dir, wheel) },
	})
}

// ONNXRuntimeLibrary is the file name of the library in the directory of ONNXRuntime.
const ONNXRuntimeLibrary = "libonnxruntime.so.1"

func fillONNXRuntime(ctx context.Context, dir string, wheel Wheel) error {
	download := filepath.Join(dir, "download")
	if err := os.Mkdir(download, 0o755); err != nil {
		return fmt.Errorf("create download directory: %w", err)
	}
	file, err := wheel.Fetch(ctx, download)
	if err != nil {
		return err
	}
	err = Extract(file, func(name string) string {
		switch name {
		case "onnxruntime/capi/libonnxruntime.so." + wheel.Version:
			return filepath.Join(dir, ONNXRuntimeLibrary)
		case "onnxruntime/LICENSE", "onnxruntime/ThirdPartyNotices.txt":
			return filepath.Join(dir, filepath.Base(name))
		}
		return ""
	}, nil)
	if err != nil {
		return err
	}
	return os.RemoveAll(download)
}
