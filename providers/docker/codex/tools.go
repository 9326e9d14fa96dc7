package codex

import "github.com/sandplan/sandplan/providers/docker/codex/files"

// toolSpecs are the tools as the model is told of them.
func toolSpecs(names []string) []any {
	text := func(what string) event { return event{"type": "string", "description": what} }
	number := func(what string) event { return event{"type": "integer", "minimum": 1, "description": what} }
	spec := func(name, what string, required []string, properties event) event {
		return event{"type": "function", "name": name, "description": what, "inputSchema": event{
			"type": "object", "properties": properties, "required": required, "additionalProperties": false}}
	}
	all := map[string]event{
		files.ReadFile: spec(files.ReadFile, "Read a text file of the repository, as it stands there.", []string{"path"}, event{
			"path": text("the file, relative to the repository"), "offset": number("the first line, from 1"), "limit": number("how many lines")}),
		files.ListDir: spec(files.ListDir, "List a directory of the repository. Directories end in a slash.", []string{"path"}, event{
			"path": text("the directory, relative to the repository; . is its root")}),
		files.Search: spec(files.Search, "Search the repository's text files, line by line, but for those that .gitignore names.", []string{"pattern"}, event{
			"pattern": text("a regular expression (RE2)"), "path": text("where to search; default ."),
			"glob": text("only files whose name matches, such as *.go"), "ignore_case": event{"type": "boolean"}}),
	}
	out := []any{}
	for _, n := range names {
		if s, ok := all[n]; ok {
			out = append(out, s)
		}
	}
	return out
}
