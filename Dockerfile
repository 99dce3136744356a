# The container images, a target each, of programs that are built already: "make images" or GoReleaser calls this.
# guard and agent load the driver's library, which needs the C library.

FROM gcr.io/distroless/static-debian13:nonroot AS static
LABEL org.opencontainers.image.source="https://github.com/gpuslice/gpuslice" org.opencontainers.image.licenses="Apache-2.0"
USER 65532:65532
COPY bin/licenses /usr/share/licenses

FROM gcr.io/distroless/base-nossl-debian13:nonroot AS libc
LABEL org.opencontainers.image.source="https://github.com/gpuslice/gpuslice" org.opencontainers.image.licenses="Apache-2.0 AND LGPL-2.1-or-later"
USER 65532:65532
COPY bin/licenses /usr/share/licenses

FROM static AS webhook
LABEL org.opencontainers.image.title="gpuslice-webhook" \
      org.opencontainers.image.description="The admission webhook of gpuslice, which gives pods slices of NVIDIA GPUs"
ARG TARGETPLATFORM
COPY bin/$TARGETPLATFORM/gpuslice-webhook /
RUN ["/gpuslice-webhook", "--version"]
ENTRYPOINT ["/gpuslice-webhook"]

FROM static AS cli
LABEL org.opencontainers.image.title="gpuslice-cli" \
      org.opencontainers.image.description="The command line of gpuslice, which explains, checks and reports"
ARG TARGETPLATFORM
COPY bin/$TARGETPLATFORM/gpuslice /
RUN ["/gpuslice", "--version"]
ENTRYPOINT ["/gpuslice"]

# A program that was compiled against a newer C library than this one would fail in every pod: running it here finds that out.
FROM libc AS guard
LABEL org.opencontainers.image.title="gpuslice-guard" \
      org.opencontainers.image.description="The guard of gpuslice, which holds a pod to its slice of an NVIDIA GPU"
ARG TARGETPLATFORM
COPY bin/$TARGETPLATFORM/gpuslice-guard bin/$TARGETPLATFORM/gpuslice-exec /
COPY bin/$TARGETPLATFORM/gpuslice-prove /
RUN ["/gpuslice-exec", "/gpuslice-guard", "--version"]
ENTRYPOINT ["/gpuslice-guard"]

FROM libc AS agent
LABEL org.opencontainers.image.title="gpuslice-agent" \
      org.opencontainers.image.description="The agent of gpuslice, which holds the pods of a node to their slices of NVIDIA GPUs"
ARG TARGETPLATFORM
COPY bin/$TARGETPLATFORM/gpuslice-agent /
RUN ["/gpuslice-agent", "--version"]
ENTRYPOINT ["/gpuslice-agent"]
