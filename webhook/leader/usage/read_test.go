package usage

import (
	"encoding/json"
	"testing"

	"github.com/gpuslice/gpuslice/policies/quota"
)

// TestUnits holds the units of an Amount against those of quotas.
func TestUnits(t *testing.T) {
	var c quota.Charge
	if err := json.Unmarshal([]byte(`{"devices": "1", "memory": "1Gi"}`), &c); err != nil {
		t.Fatal(err)
	}
	hour := Amount{int64(c.Memory), int64(c.Devices)}.times(secondsOfHour)
	if hour.DeviceHours() != 1 || hour.GiBHours() != 1 {
		t.Errorf("an hour of 1Gi and one device is %v, %v", hour.GiBHours(), hour.DeviceHours())
	}
}
