package podspec

import (
	"fmt"
	"hash/fnv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// TestClaimNameIsOneContainers holds that no container's name makes the claim of another's: not the whole of it, not what is left of
// it, and not what a short hash makes of it.
func TestClaimNameIsOneContainers(t *testing.T) {
	t.Parallel()
	containers := []string{"a", "a-b", "gpuslice", "gpuslice-a"}
	for _, length := range []int{53, 54, 55, 56, 57, 62, 63} {
		long := strings.Repeat("a", length-1)
		containers = append(containers, long+"b", long+"c")
		h := fnv.New32a()
		h.Write([]byte(long + "b"))
		containers = append(containers, fmt.Sprintf("%s-%08x", long[:min(length-1, 45)], h.Sum32()))
	}
	of := map[string]string{OnlyClaim: "the only container"}
	for i := 0; i < len(containers); i++ {
		container := containers[i]
		name := ClaimName(container)
		if other, ok := of[name]; ok && other != container {
			t.Errorf("containers %q and %q have one claim: %q", container, other, name)
		}
		of[name] = container
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 || !IsOurClaim(name) {
			t.Errorf("the claim of container %q: %q, %v", container, name, problems)
		}
		if spelled := strings.TrimPrefix(name, Prefix); len(containers) < 200 && len(validation.IsDNS1123Label(spelled)) == 0 {
			containers = append(containers, spelled) // a container that is called what ours is
		}
	}
}
