// Package imports holds the test that imports a big export into real `mnemo
// serve` processes and kills them in the middle. What CI does with 300
// conversations can be done with any number:
//
//	go run ./hack/test -only postgres,milvus,model -- go test ./test/imports -v -timeout 3h \
//		-args -conversations 20000 -bytes 1073741824 -quota 20000
package imports
