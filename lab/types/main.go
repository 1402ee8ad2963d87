// Prints the Go types of Kubernetes objects as src/seatrial/kinds/tables/go_types.txt has them.
package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

var marshaler = reflect.TypeOf((*json.Marshaler)(nil)).Elem()
var structs = map[string]string{}

// What Kubernetes 1.25 and later do not serve, or do not keep.
var left = []string{"alpha", "extensions/", "authentication.", "authorization.", "imagepolicy.", "internal.", "events.",
	"apps/v1beta", "batch/v1beta", "policy/v1beta", "discovery.k8s.io/v1beta", "node.k8s.io/v1beta",
	"rbac.authorization.k8s.io/v1beta", "scheduling.k8s.io/v1beta", "coordination.k8s.io/v1beta"}

func main() {
	roots := map[string]string{}
	for gvk, typ := range scheme.Scheme.AllKnownTypes() {
		_, isMeta := reflect.PointerTo(typ).Elem().FieldByName("ObjectMeta")
		gv := gvk.GroupVersion().String()
		isLeft := func(words string) bool {
			return words != "authorization." && strings.Contains(gv, words) || strings.HasPrefix(gv, words)
		}
		if gvk.Version == runtime.APIVersionInternal || !isMeta || slices.ContainsFunc(left, isLeft) {
			continue
		}
		roots[gv+" "+gvk.Kind] = code(typ)[1:]
	}
	for _, key := range sorted(roots) {
		fmt.Println(key, roots[key])
	}
	fmt.Println()
	for _, key := range sorted(structs) {
		fmt.Println(key + structs[key])
	}
}

func sorted(of map[string]string) []string {
	keys := []string{}
	for key := range of {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

// The code of a type: one sign, and what it is of.
func code(t reflect.Type) string {
	if t.Kind() != reflect.Pointer && (t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler)) {
		return "%" + t.Name()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return ">" + code(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "&"
		}
		return "*" + code(t.Elem())
	case reflect.Map:
		return "{" + code(t.Elem())
	case reflect.String:
		return "\""
	case reflect.Bool:
		return "?"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint32, reflect.Uint64:
		return "#"
	case reflect.Float32, reflect.Float64:
		return "."
	case reflect.Struct:
		name := t.String()
		if parts := strings.Split(t.PkgPath(), "/"); len(parts) > 2 && strings.HasPrefix(t.PkgPath(), "k8s.io/api/") {
			name = parts[2] + "." + parts[3] + "." + t.Name()
		}
		if _, known := structs[name]; !known {
			structs[name] = ""
			structs[name] = fields(t)
		}
		return "=" + name
	}
	panic(t.String())
}

// The fields of a struct, `name` with a `!` if it is written although it is empty.
func fields(t reflect.Type) string {
	line := ""
	for i := 0; i < t.NumField(); i++ {
		field := t.Field(i)
		tag, has := field.Tag.Lookup("json")
		parts := strings.Split(tag, ",")
		if !has || parts[0] == "-" {
			panic(t.String() + field.Name)
		}
		if parts[0] == "" {
			line += fields(field.Type)
			continue
		}
		if parts[0] == "status" && t.Name() != "PersistentVolumeClaim" { // Only that one is part of another object.
			continue
		}
		name, omits := parts[0], false
		for _, part := range parts[1:] {
			omits = omits || part == "omitempty" && field.Type.Kind() != reflect.Struct || part == "omitzero"
		}
		if !omits {
			name += "!"
		}
		line += " " + name + code(field.Type)
	}
	return line
}
