// Package markdown words plans and audits for a pull request: the summary first, the details folded, and
// never longer than a comment may be.
//
// Names, paths and values come from whoever opened the pull request, and from the engine. They stand in code
// spans and code blocks only, whose fences are longer than any that they hold, so that they can neither
// become markup nor call anybody. Start with text.go.
package markdown
