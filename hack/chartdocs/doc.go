// Command chartdocs writes charts/mnemo/README.md from the comments in
// values.yaml. Run it with `make generate`.
package main
