// Package imports contains a test that imports a large export into real `mnemo
// serve` processes and kills them during the import. CI uses 300 conversations;
// flags select another number:
//
//	go run ./hack/test -only postgres,milvus,model,mnemo -- go test ./test/imports -v -timeout 3h \
//		-args -conversations 20000 -bytes 1073741824 -quota 20000
package imports
