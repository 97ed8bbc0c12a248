//! Child processes, with their CPU time and memory as Linux counts them in /proc.
//!
//! Guarantees: dropping a `ChildProcess` leaves no process behind. Figures cover the process with its threads,
//! including those that have ended, and its children.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::Result;

/// One tick of the times in /proc/PID/stat: always a hundredth of a second, whatever the kernel's timer frequency.
const TICK_US: f64 = 10_000.0;

pub struct ChildProcess {
    child: Child,
    /// The line that reported readiness.
    pub ready: String,
}

impl ChildProcess {
    /// Starts the program and waits for the first line on its standard output for which `is_ready` is true.
    pub fn start(command: &mut Command, is_ready: impl Fn(&str) -> bool) -> Result<ChildProcess> {
        let name = format!("{:?}", command.get_program());
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let child = command.spawn().map_err(|e| format!("cannot start {name}: {e}"))?;
        let mut running = ChildProcess { child, ready: String::new() };
        let stdout = running.child.stdout.take().ok_or("no standard output")?;
        let mut lines = BufReader::new(stdout).lines();
        let ready = lines.by_ref().map_while(|line| line.ok()).find(|line| is_ready(line));
        running.ready = ready.ok_or_else(|| format!("{name} ended before it was ready"))?;
        std::thread::spawn(move || lines.for_each(drop)); // drain the pipe: a full one would block the program
        Ok(running)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGTERM and waits until the process has ended, so that its data can be opened again.
    pub fn terminate(mut self) -> Result {
        let signalled = Command::new("kill").arg(self.pid().to_string()).status();
        signalled.map_err(|e| format!("cannot ask process {} to end: {e}", self.pid()))?;
        self.child.wait().map(drop).map_err(|e| e.to_string())
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended already, which is fine
        let _ = self.child.wait();
    }
}

/// CPU time of the process, its children, and their ended descendants.
pub fn cpu_us(pid: u32) -> Result<f64> {
    let own = ticks(pid)?;
    let children: f64 = children(pid).into_iter().filter_map(|child| ticks(child).ok()).sum();
    Ok((own + children) * TICK_US)
}

/// CPU time of the process's running threads alone, in nanoseconds.
pub fn cpu_ns_of_threads(pid: u32) -> Result<u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).map_err(|e| format!("cannot read process {pid}: {e}"))?;
    let run = |path: std::path::PathBuf| -> Option<u64> {
        fs::read_to_string(path.join("schedstat")).ok()?.split(' ').next()?.parse().ok()
    };
    Ok(threads.flatten().filter_map(|thread| run(thread.path())).sum())
}

/// Resident memory of the process and its children; shared pages count once per process.
pub fn resident_kb(pid: u32) -> Result<u64> {
    let family = std::iter::once(pid).chain(children(pid));
    Ok(family.filter_map(process_resident_kb).sum())
}

fn process_resident_kb(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// utime, stime, cutime and cstime: fields 14 to 17. The name before them may contain spaces, but ends in `)`.
fn ticks(pid: u32) -> Result<f64> {
    let stat =
        fs::read_to_string(format!("/proc/{pid}/stat")).map_err(|e| format!("cannot read process {pid}: {e}"))?;
    let (_, fields) = stat.rsplit_once(')').ok_or("a stat file without a name")?;
    Ok(fields.split_ascii_whitespace().skip(11).take(4).filter_map(|field| field.parse::<f64>().ok()).sum())
}

fn children(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_ascii_whitespace().filter_map(|child| child.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_this_process_can_be_read() {
        let pid = std::process::id();
        assert!(cpu_us(pid).is_ok());
        assert!(resident_kb(pid).unwrap() > 0);
        assert!(cpu_ns_of_threads(pid).unwrap() > 0);
    }
}
