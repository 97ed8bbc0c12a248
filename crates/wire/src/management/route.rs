//! Which resource a path names.
//!
//! ```text
//! v1/containers/{database}/{container}                           PUT
//!                                      partitions                GET
//!                                      partitions/split          POST
//!                                      partitions/{id}/split     POST
//!                                      partitions/merge          POST
//!                                      partitions/{id}/fault     PUT DELETE   tests
//!                                      keys                      GET
//!                                      statistics                GET
//!                                      throughput                GET PUT
//! v1/databases/{database}/throughput                             GET PUT
//! v1/databases/{database}/copy                                   POST
//! v1/jobs                                                        GET
//! v1/jobs/{id}                                                   GET DELETE
//! v1/jobs/{id}/pause, resume                                     POST
//! v1/snapshots, snapshots/{name}, snapshots/{name}/restore       `snapshots`
//! v1/throttles, metrics, alerts                                  GET
//! v1/topology                                                    GET
//! v1/topology/holds/{step}                                       PUT DELETE   tests
//! v1/topology/clock                                              POST         tests
//! ```

use pleiad_engine::{ContainerName, Step};
use pleiad_model::{Error, Result};

#[derive(Clone, Copy, Debug)]
pub enum Route<'a> {
    Partitions(ContainerName<'a>),
    /// Of one partition, or of the largest.
    Split(ContainerName<'a>, Option<u32>),
    Merge(ContainerName<'a>),
    Fault(ContainerName<'a>, u32),
    Container(ContainerName<'a>),
    Keys(ContainerName<'a>),
    Statistics(ContainerName<'a>),
    Throughput(Owner<'a>),
    CopyDatabase(&'a str),
    Jobs,
    Job(u64),
    Pause(u64),
    Resume(u64),
    Throttles,
    Metrics,
    Alerts,
    Topology,
    Hold(Step),
    Clock,
}

/// For whom throughput is reserved.
#[derive(Clone, Copy, Debug)]
pub enum Owner<'a> {
    Database(&'a str),
    Container(ContainerName<'a>),
}

impl<'a> Route<'a> {
    pub fn parse(names: &'a [String]) -> Result<Route<'a>> {
        let names: Vec<&'a str> = names.iter().map(String::as_str).collect();
        Route::of(&names).ok_or_else(|| no_such_place(&names))
    }

    fn of(names: &[&'a str]) -> Option<Route<'a>> {
        Some(match *names {
            ["v1", "containers", database, container, ref rest @ ..] => {
                return Route::of_container(ContainerName::Named { database, container }, rest);
            }
            ["v1", "databases", database, "throughput"] => Route::Throughput(Owner::Database(database)),
            ["v1", "databases", database, "copy"] => Route::CopyDatabase(database),
            ["v1", "jobs"] => Route::Jobs,
            ["v1", "jobs", id] => Route::Job(id.parse().ok()?),
            ["v1", "jobs", id, "pause"] => Route::Pause(id.parse().ok()?),
            ["v1", "jobs", id, "resume"] => Route::Resume(id.parse().ok()?),
            ["v1", "throttles"] => Route::Throttles,
            ["v1", "metrics"] => Route::Metrics,
            ["v1", "alerts"] => Route::Alerts,
            ["v1", "topology"] => Route::Topology,
            ["v1", "topology", "holds", step] => Route::Hold(Step::parse(step)?),
            ["v1", "topology", "clock"] => Route::Clock,
            _ => return None,
        })
    }

    fn of_container(at: ContainerName<'a>, rest: &[&'a str]) -> Option<Route<'a>> {
        Some(match *rest {
            [] => Route::Container(at),
            ["partitions"] => Route::Partitions(at),
            ["partitions", "split"] => Route::Split(at, None),
            ["partitions", "merge"] => Route::Merge(at),
            ["partitions", id, "split"] => Route::Split(at, Some(id.parse().ok()?)),
            ["partitions", id, "fault"] => Route::Fault(at, id.parse().ok()?),
            ["keys"] => Route::Keys(at),
            ["statistics"] => Route::Statistics(at),
            ["throughput"] => Route::Throughput(Owner::Container(at)),
            _ => return None,
        })
    }
}

fn no_such_place(names: &[&str]) -> Error {
    let hint = match *names {
        ["v1", "topology", "holds", ..] => {
            "A split or merge can be held at prepare, copy, catch-up, fence, publish or drop."
        }
        ["v1", ..] => "docs/management.md lists what there is.",
        _ => "This server knows version 1: /_pleiad/v1/….",
    };
    Error::not_found(format!("The path \"/_pleiad/{}\" names no resource. {hint}", names.join("/")))
}
