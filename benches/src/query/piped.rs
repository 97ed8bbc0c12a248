//! A process that answers requests over pipes, one at a time.
//!
//! Guarantees: one process serves all requests, so that its caches stay warm; dropping it ends the process. If the
//! process ends, its output becomes the error.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::Result;

pub struct PipedProcess {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl PipedProcess {
    /// Starts `command` with standard error redirected to standard output.
    pub fn start(command: &Command) -> Result<PipedProcess> {
        let mut joined = Command::new("sh");
        joined.args(["-c", r#"exec "$0" "$@" 2>&1"#]).arg(command.get_program()).args(command.get_args());
        let mut child = joined
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("cannot start {:?}: {e}", command.get_program()))?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (stdin, stdout) = stdin.zip(stdout).ok_or("a program without its pipes")?;
        Ok(PipedProcess { child, stdin, lines: BufReader::new(stdout).lines() })
    }

    /// Writes `text` and reads lines up to the line `end`, which is not part of the answer.
    pub fn exchange(&mut self, text: &str, end: &str) -> Result<Vec<String>> {
        let written = self.stdin.write_all(text.as_bytes()).and_then(|()| self.stdin.flush());
        let mut answer = Vec::new();
        for line in self.lines.by_ref().map_while(|line| line.ok()) {
            if line == end {
                return written.map(|()| answer).map_err(|e| e.to_string());
            }
            answer.push(line);
        }
        Err(format!("the program ended: {}", answer.join(" / ")))
    }
}

impl Drop for PipedProcess {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended already, which is fine
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_gets_its_answer_and_an_exit_becomes_an_error() {
        let mut program = Command::new("sh");
        program.args([
            "-c",
            "while read word; do [ $word = stop ] && { echo why >&2; exit 1; }; echo got $word; echo .; done",
        ]);
        let mut process = PipedProcess::start(&program).unwrap();
        assert_eq!(process.exchange("a\n", ".").unwrap(), ["got a"]);
        assert_eq!(process.exchange("b\n", ".").unwrap(), ["got b"]);
        assert!(process.exchange("stop\n", ".").unwrap_err().contains("why"));
    }
}
