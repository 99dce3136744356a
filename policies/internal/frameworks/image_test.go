package frameworks

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestImage(t *testing.T) {
	t.Parallel()
	t.Run("is recognized under any registry", func(t *testing.T) {
		t.Parallel()
		tests := []struct {
			image, framework, version string
		}{
			{"pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime", "pytorch", "2.4.0"},
			{"docker.io/pytorch/pytorch:2.4.0-cuda12.1-cudnn9-devel", "pytorch", "2.4.0"},
			{"mirror.corp:5000/dockerhub/pytorch/pytorch:2.4.0-cuda12.1", "pytorch", "2.4.0"},
			{"localhost/pytorch/pytorch:2.4.0-cuda12.1@sha256:" + strings.Repeat("0", 64), "pytorch", "2.4.0"},
			{"PyTorch/PyTorch:2.4.0-CUDA12.1", "pytorch", "2.4.0"},
			{"pytorch/pytorch", "pytorch", ""},
			{"pytorch/pytorch:latest", "pytorch", ""},
			{"pytorch/pytorch:2024.05.20", "pytorch", ""},
			{"arm64v8/pytorch", "", ""},
			{"corp/pytorch", "", ""},
			{"corp/team/pytorch-training:2.12.1", "pytorch", ""},
			{"763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.4.0-gpu-py311-cu124-ubuntu22.04-ec2", "pytorch", "2.4.0"},
			{"763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-training:2.1.0-transformers4.36.0-gpu-py310-cu121-ubuntu20.04",
				"pytorch", "2.1.0"},
			{"us-docker.pkg.dev/deeplearning-platform-release/gcr.io/huggingface-pytorch-training-cu121.2-3.transformers.4-42.ubuntu2204.py310",
				"pytorch", "2.3"},
			{"us-docker.pkg.dev/deeplearning-platform-release/gcr.io/pytorch-cu121.2-2.py310:latest", "pytorch", "2.2"},
			{"nvcr.io/nvidia/pytorch:24.05-py3", "pytorch", "2.4.0a0"},
			{"nvcr.io/nvidia/pytorch:23.10-py3-igpu", "pytorch", "2.1.0a0"},
			{"nvcr.io/nvidia/pytorch:18.01-py3", "pytorch", ""},
			{"nvcr.io/nvidia/pytorch:26.09-py3", "pytorch", "2.11.0a0 or newer"},
			{"runpod/pytorch:2.4.0-py3.11-cuda12.4.1-devel-ubuntu22.04", "pytorch", "2.4.0"},
			{"runpod/pytorch:1.0.2-cu1281-torch280-ubuntu2404", "pytorch", ""},
			{"axolotlai/axolotl:main-20250510-py3.11-cu124-2.6.0", "pytorch", "2.6.0"},
			{"pytorchlightning/pytorch_lightning:2.0.0-py3.10-torch2.0-cuda11.7.1", "pytorch", "2.0"},
			{"vllm/vllm-openai:v0.6.3.post1", "vllm", "0.6.3.post1"},
			{"docker.io/vllm/vllm-openai:V0.10.0", "vllm", "0.10.0"},
			{"vllm/vllm-openai:v0.11.0rc1-x86_64", "vllm", "0.11.0rc1"},
			{"vllm/vllm-openai:nightly", "vllm", ""},
			{"corp/vllm-openai:7.1", "vllm", ""},
			{"nvcr.io/nvidia/vllm:25.09-py3", "vllm", ""},
			{"egs-registry.cn-hangzhou.cr.aliyuncs.com/egs/vllm:0.20.2-pytorch2.11-cu130-20260512", "vllm", "0.20.2"},
			{"lmsysorg/sglang:v0.5.12.post1-cu129", "sglang", "0.5.12.post1"},
			{"ghcr.io/huggingface/text-generation-inference:3.3.4", "tgi", "3.3.4"},
			{"us-docker.pkg.dev/deeplearning-platform-release/gcr.io/huggingface-text-generation-inference-cu124.2-3.ubuntu2204.py311",
				"tgi", "2.3"},
			{"tensorflow/tensorflow:2.15.0-gpu", "tensorflow", "2.15.0"},
			{"tensorflow/serving:latest-gpu", "tensorflow", ""},
			{"nvcr.io/nvidia/tensorflow:24.05-tf2-py3", "tensorflow", ""},
			{"nvcr.io/nvidia/jax:24.10-py3", "jax", ""},
			{"cupy/cupy:v13.0.0", "cupy", "13.0.0"},
			{"paddlepaddle/paddle:2.6.1-gpu-cuda12.0-cudnn8.9-trt8.6", "paddle", "2.6.1"},
			{"ollama/ollama:0.5.4", "ollama", "0.5.4"},
			{"ghcr.io/ggml-org/llama.cpp:server-cuda", "llama-cpp", ""},
			{"FILLED BY THE OPERATOR", "", ""},
			{"$REGISTRY/pytorch/pytorch:2.10.0", "", ""},
			{"", "", ""},
			{"/pytorch/pytorch:2.10.0", "", ""},
			{"pytorch//pytorch", "", ""},
			{strings.Repeat("a", 2000) + "/pytorch/pytorch:2.10.0", "", ""},
		}
		for _, tt := range tests {
			t.Run(tt.image, func(t *testing.T) {
				t.Parallel()
				got := For(sample{image: tt.image}.input())
				if got.Framework != tt.framework || got.Version != tt.version {
					t.Errorf("got %q %q, want %q %q", got.Framework, got.Version, tt.framework, tt.version)
				}
			})
		}
	})
	t.Run("patterns compare components", func(t *testing.T) {
		t.Parallel()
		tests := []struct {
			pattern, image string
			want           bool
		}{
			{"*/pytorch/pytorch", "pytorch/pytorch", true},
			{"a/*", "x/a/b", true},
			{"a/*", "a/b/c", false},
			{"a-*/b", "corp/a-1/b", true},
			{"b", "corp/ab", false},
			{"docker.io/library/b", "b", true},
			{"x/corp/b", "corp/b", false},
		}
		for _, tt := range tests {
			t.Run(tt.pattern+" and "+tt.image, func(t *testing.T) {
				t.Parallel()
				p, err := compilePattern(tt.pattern)
				if err != nil {
					t.Fatal(err)
				}
				if got := anyMatches([]pattern{p}, parseImage(tt.image)); got != tt.want {
					t.Errorf("got %v, want %v", got, tt.want)
				}
			})
		}
	})
}

func TestNeedsPID1(t *testing.T) {
	t.Parallel()
	t.Run("where the image's init runs", func(t *testing.T) {
		t.Parallel()
		tests := []struct {
			name, image string
			command     []string
			want        bool
		}{
			{"a Kubeflow notebook", "kubeflownotebookswg/jupyter-pytorch-cuda-full:v1.8.0", nil, true},
			{"its newer registry", "ghcr.io/kubeflow/kubeflow/notebook-servers/jupyter-pytorch-cuda:v1.10.0", nil, true},
			{"an image of linuxserver.io", "lscr.io/linuxserver/jellyfin:latest", nil, true},
			{"a command takes the init's place", "kubeflownotebookswg/jupyter-scipy:v1.8.0", []string{"jupyter", "lab"}, false},
			{"the init by name", "corp/notebook:1", []string{"/init"}, true},
			{"an image on Phusion's base", "phusion/passenger-customizable:3.1.0", nil, true},
			{"an image on RStudio's s6", "rocker/ml-verse:4.4", nil, true},
			{"systemd of Red Hat", "registry.access.redhat.com/ubi9/ubi-init:9.4", nil, true},
			{"its older name", "registry.access.redhat.com/ubi8-init", nil, true},
			{"no systemd of Red Hat", "registry.access.redhat.com/ubi9/ubi:9.4", nil, false},
			{"an init of policy's", "registry.example.com/team/desktop-s6:3", nil, true},
			{"a command takes its place, too", "registry.example.com/team/desktop-s6:3", []string{"bash"}, false},
			{"PyTorch itself", torch24, nil, false},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				if got := NeedsPID1(&corev1.Container{Image: tt.image, Command: tt.command}, []string{"[", "team/*-s6"}); got != tt.want {
					t.Errorf("got %v, want %v", got, tt.want)
				}
			})
		}
	})
}

func FuzzImage(f *testing.F) {
	for _, seed := range []string{"", "a", "a/b:c", "localhost:5000/a@sha256:00", "A/B:C-1.2", ":", "/", "@", "a:/b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		image := parseImage(ref)
		if len(image.parts) == 0 && image.tag != "" {
			t.Fatalf("%q has a tag and no name", ref)
		}
		again := parseImage(image.String())
		if len(image.parts) > 0 && image.String() != again.String() {
			t.Errorf("%q is %q, and read again %q", ref, image, again)
		}
	})
}
