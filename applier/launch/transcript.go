package launch

import "io"

// outputTo are those who get what the command prints, the transcript of its CLI among them.
func (r *run) outputTo() io.Writer {
	return r.output.writer(r.Stdout, r.record.output(), r.transcript)
}

// offersOthers is the decision when the CLI gives its model other tools than the sealed command says, nil
// when it does not. The sandbox holds all the same; but a tool that nobody declared is none that may work.
func (r *run) offersOthers() *Decision {
	why := r.transcript.Why()
	if why == "" {
		return nil
	}
	return &Decision{Code: CodeDrift, Reason: "the vendor's CLI is not what was declared: " + why}
}

// failedCode is the exit code of a command that ended with 0 and said that it had failed.
const failedCode = 1

// ownEnd takes the end that the command chose itself. Some CLIs end with 0 after an error or an
// interrupt; what they say last is the truth then.
func (r *run) ownEnd(code int) {
	if d := r.offersOthers(); d != nil {
		r.decide(d)
		return
	}
	r.result.By, r.result.Code = ByAgent, code
	if why := r.transcript.Failure(); code == 0 && why != "" {
		r.result.Code = failedCode
		r.record.Exit.Reason = "it ended with 0, and its last word is: " + why
	}
}
