# Codex fixes something. The prompt holds the task and the file, which file() reads when the plan is made;
# what else it needs to know it reads, lists and searches itself.
#
#   sandplan plan -config=codex.hcl -var worktree=/path/to/clone -var file=/path/to/clone/parse.go

sandplan {
  required_version = ">= 0.1.0"
  project          = "codex-example"
}

variable "worktree" {
  type        = string
  description = "the root of a clone that the agent may write"
  default     = "../worktree"
}

variable "user" {
  type        = string
  description = "the numbers of user and group that own the clone"
  default     = "1000:1000"
}

variable "file" {
  type        = string
  description = "the file to fix"
  default     = "codex.hcl" # so that this example works as it stands
}

variable "task" {
  type    = string
  default = "Handle the error that ReadFile returns instead of dropping it."
}

vendor "codex" {
  image = "codeboost/codex:0.171.0"
  hosts = ["api.openai.com"] # an API key needs no more

  credential "OPENAI_API_KEY" {
    source_env = "OPENAI_API_KEY"
  }
}

invocation "fix" {
  vendor    = vendor.codex
  phase     = phase.fix
  worktree  = var.worktree
  user      = var.user
  after_run = "keep" # look at what it left behind before it is armed again
  timeout   = "20m"

  prompt = <<-EOT
    ${var.task}

    The file is ${basename(var.file)}:

    ${file(var.file)}
  EOT

  limits {
    output = "4MiB"
  }
}
