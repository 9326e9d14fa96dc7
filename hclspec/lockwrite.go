package hclspec

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

const lockHeader = "# Written by sandplan init: what each image is, and what it holds. Check it in; to move a pin,\n# run sandplan init -upgrade.\n"

// FormatLock is the text of a lock file: sorted, so that the same pins give the same bytes.
func FormatLock(l Lock) []byte {
	f := hclwrite.NewEmptyFile()
	body := f.Body()
	body.AppendUnstructuredTokens(hclwrite.Tokens{{Bytes: []byte(lockHeader)}})
	if len(l.DNS) > 0 {
		var list []string
		for _, a := range l.DNS { // their order has a meaning
			list = append(list, a.String())
		}
		body.AppendNewline()
		body.SetAttributeValue("dns", listOf(list))
	}
	images := append([]LockImage{}, l.Images...)
	sort.Slice(images, func(i, j int) bool { return images[i].Ref < images[j].Ref })
	for _, img := range images {
		body.AppendNewline()
		writeLockImage(body.AppendNewBlock("image", []string{img.Ref}).Body(), img)
	}
	return hclwrite.Format(f.Bytes())
}

func writeLockImage(b *hclwrite.Body, img LockImage) {
	if img.Digest != "" {
		b.SetAttributeValue("digest", cty.StringVal(img.Digest))
	}
	if len(img.IDs) > 0 {
		b.SetAttributeValue("ids", listOf(sorted(img.IDs)))
	}
	if img.Inspected {
		b.SetAttributeValue("cli", cty.StringVal(img.CLI))
		b.SetAttributeValue("shell", cty.BoolVal(img.Shell))
	}
	c := img.Config
	if len(c.Env)+len(c.Labels)+len(c.Volumes)+len(c.ExposedPorts) == 0 {
		return
	}
	b.AppendNewline()
	b = b.AppendNewBlock("config", nil).Body()
	writeMap(b, "env", c.Env)
	writeList(b, "exposed_ports", c.ExposedPorts)
	writeMap(b, "labels", c.Labels)
	writeList(b, "volumes", c.Volumes)
}

func writeMap(b *hclwrite.Body, name string, m map[string]string) {
	if len(m) == 0 {
		return
	}
	vals := map[string]cty.Value{}
	for k, v := range m {
		vals[k] = cty.StringVal(v)
	}
	b.SetAttributeValue(name, cty.MapVal(vals))
}

func writeList(b *hclwrite.Body, name string, list []string) {
	if len(list) > 0 {
		b.SetAttributeValue(name, listOf(sorted(list)))
	}
}

func sorted(list []string) []string {
	out := append([]string{}, list...)
	sort.Strings(out)
	return out
}

// WriteLock writes the lock file to l.Path, whole or not at all: a reader, or a crash, finds the old
// text or the new one.
func WriteLock(l Lock) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write the lock file: %w", err)
		}
	}()
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(l.Path); err == nil {
		mode = info.Mode().Perm()
	}
	tmp, err := os.CreateTemp(filepath.Dir(l.Path), ".sandplan.lock-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			tmp.Close()
			os.Remove(tmp.Name())
		}
	}()
	if err := tmp.Chmod(mode); err != nil {
		return err
	}
	if _, err := tmp.Write(FormatLock(l)); err != nil {
		return err
	}
	if err := tmp.Sync(); err != nil {
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), l.Path)
}
