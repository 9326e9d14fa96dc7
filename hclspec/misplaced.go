package hclspec

import (
	"regexp"
	"slices"

	"github.com/hashicorp/hcl/v2"
)

// notExpected is what HCL says of a name that may not stand where it stands, and that is like none that may.
var notExpected = regexp.MustCompile(`^(Blocks of type|An argument named) "([^"]+)" (?:are|is) not expected here\.$`)

const (
	noState = "There is no state: the engine is the state, and an object with another address is another object."
	noOrder = "Nothing waits for an invocation but who runs it."
)

// foreign says of blocks and arguments that Terraform has why they are not here, or what is.
var foreign = map[string]string{
	"terraform":          "The settings of a configuration stand in its sandplan block.",
	"required_providers": "The one provider is built in.",
	"backend":            noState,
	"cloud":              noState,
	"moved":              noState,
	"removed":            noState,
	"import":             "sandplan never adopts objects that it has not made.",
	"resource":           "What there is to make follows from the invocation blocks.",
	"data":               "Nothing is read from elsewhere but files, with functions such as file().",
	"module":             "There are no modules: the *.sandplan.hcl files of a directory are one configuration, and for_each repeats an invocation.",
	"dynamic":            "Lists are written as values, and for_each repeats an invocation.",
	"lifecycle":          "Whatever differs is removed and made anew, and nothing keeps it.",
	"provisioner":        "Nothing runs in a sandbox but its agent: what has to be there belongs in its image.",
	"depends_on":         noOrder,
	"alias":              "There is one engine to a configuration.",
	"nullable":           "A variable without a default has to have a value.",
}

// explain adds to what HCL says of a name where it may stand, or what to do without it.
func explain(d *hcl.Diagnostic) {
	m := notExpected.FindStringSubmatch(d.Detail)
	if m == nil {
		return
	}
	if text := foreign[m[2]]; text != "" {
		d.Detail += " " + text
		return
	}
	switch homes := configShape.homes(m[2], m[1] == "Blocks of type", ""); {
	case slices.Contains(homes, ""):
		d.Detail += " It stands outside of all other blocks."
	case len(homes) > 0:
		for i, h := range homes {
			homes[i] = article(h)
		}
		d.Detail += " It belongs in " + orList(homes) + " block."
	}
}

// homes are the types of the blocks in which a name may stand; typ is the type of the shape itself.
func (sh *shape) homes(name string, block bool, typ string) []string {
	var out []string
	if block && sh.blocks[name] != nil || !block && (slices.Contains(sh.required, name) || slices.Contains(sh.optional, name)) {
		out = append(out, typ)
	}
	for _, inner := range sortedKeys(sh.blocks) {
		if sh.blocks[inner] != nil {
			out = append(out, sh.blocks[inner].homes(name, block, inner)...)
		}
	}
	return out
}
