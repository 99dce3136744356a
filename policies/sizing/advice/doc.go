// Package advice is the document of recommended sizes.
//
//	history of workloads -> Recommendations of the leader -> Encode (ConfigMaps of the system namespace) -> Decode -> Book of a replica's snapshot
//
// The one idea: a replica decides by the sizes of one moment, or by none. All ConfigMaps that were written together name the same time
// and how many they are, and Decode takes the latest that are complete. Nobody reads another namespace's recommendations: a
// decision has those of its own namespace alone (Book.Of).
//
// Who may create pods in a namespace may write any owner into them, and so take the size of another workload of that namespace, or
// raise it by what his pods use. He could as well write the size on his pods; limits and quota hold for both.
package advice
