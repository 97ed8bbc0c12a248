//! Timer: suspends a task for a time, on any executor.
//!
//! Requests run on a runtime, jobs on threads of their own without one. So the timer needs no runtime: its thread, which
//! starts with the first sleep, waits until the next deadline and wakes the tasks that are due.

use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

struct Alarm {
    at: Instant,
    wake: oneshot::Sender<()>,
}

static ALARMS: LazyLock<Sender<Alarm>> = LazyLock::new(|| {
    let (alarms, new_alarms) = channel();
    let thread = std::thread::Builder::new().name("timer".into()).spawn(move || wake_when_due(&new_alarms));
    if let Err(error) = thread {
        tracing::warn!(%error, "the timer could not start; nothing pauses");
    }
    alarms
});

/// Cancel safe: a task that is dropped is not woken.
pub(crate) async fn sleep(time: Duration) {
    let (wake, woken) = oneshot::channel();
    // Without the thread both fail, and the task continues at once.
    let _ = ALARMS.send(Alarm { at: Instant::now() + time, wake });
    let _ = woken.await;
}

fn wake_when_due(new_alarms: &Receiver<Alarm>) {
    let mut alarms: Vec<Alarm> = Vec::new();
    loop {
        let received = match alarms.iter().map(|alarm| alarm.at).min() {
            Some(next) => new_alarms.recv_timeout(next.saturating_duration_since(Instant::now())),
            None => new_alarms.recv().map_err(RecvTimeoutError::from),
        };
        match received {
            Ok(alarm) => alarms.push(alarm),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let now = Instant::now();
        for due in alarms.extract_if(.., |alarm| alarm.at <= now) {
            let _ = due.wake.send(()); // the task may be gone
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn sleeps(time: Duration) {
        let began = Instant::now();
        sleep(time).await;
        assert!(began.elapsed() >= time);
    }

    #[test]
    fn a_task_sleeps_at_least_as_long_as_it_asked_on_any_executor() {
        let times = [0, 1, 20].map(Duration::from_millis);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for time in times {
            pleiad_partition::commit::block_on(sleeps(time));
            runtime.block_on(sleeps(time));
        }
    }

    #[test]
    fn tasks_that_sleep_at_the_same_time_all_wake() {
        std::thread::scope(|scope| {
            for ms in [30, 10, 0, 20] {
                scope.spawn(move || pleiad_partition::commit::block_on(sleeps(Duration::from_millis(ms))));
            }
        });
    }
}
