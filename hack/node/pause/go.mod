module github.com/mnemo-dev/mnemo/hack/node/pause

go 1.26.0
