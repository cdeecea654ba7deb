package image

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Tree returns a local directory as a layer at a path of the image. Files for whose path
// in the image keep returns false are excluded.
func Tree(dir, at string, keep func(path string) bool) (Layer, error) {
	var files Layer
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		path := filepath.Join(at, strings.TrimPrefix(name, dir))
		if path == "/" {
			return nil
		}
		if !keep(path) {
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		file := File{Path: path, Mode: info.Mode()}
		switch info.Mode().Type() {
		case 0:
			file.From = name
		case os.ModeSymlink:
			target, err := os.Readlink(name)
			if err != nil {
				return err
			}
			file.Content = []byte(target)
		}
		files = append(files, file)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read files of an image: %w", err)
	}
	return files, nil
}
