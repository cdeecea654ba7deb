module github.com/mnemo-dev/mnemo/hack/node/milvus

go 1.26.0
