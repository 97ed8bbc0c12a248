//! Routes of the management API: the resource that a path names.
//!
//! ```text
//! v1/containers                                                  GET
//! v1/containers/{database}/{container}                           GET PUT
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

use pleiad_engine::{ContainerName, JobStep};
use pleiad_model::{Error, Result};

#[derive(Clone, Copy, Debug)]
pub enum ManagementRoute<'a> {
    Partitions(ContainerName<'a>),
    /// Of the given partition, or of the largest.
    Split(ContainerName<'a>, Option<u32>),
    Merge(ContainerName<'a>),
    Fault(ContainerName<'a>, u32),
    Containers,
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
    Hold(JobStep),
    Clock,
}

/// The resource that throughput is provisioned for.
#[derive(Clone, Copy, Debug)]
pub enum Owner<'a> {
    Database(&'a str),
    Container(ContainerName<'a>),
}

impl<'a> ManagementRoute<'a> {
    pub fn parse(names: &'a [String]) -> Result<ManagementRoute<'a>> {
        let names: Vec<&'a str> = names.iter().map(String::as_str).collect();
        ManagementRoute::of(&names).ok_or_else(|| no_such_resource(&names))
    }

    fn of(names: &[&'a str]) -> Option<ManagementRoute<'a>> {
        Some(match *names {
            ["v1", "containers", database, container, ref rest @ ..] => {
                return ManagementRoute::of_container(ContainerName::Named { database, container }, rest);
            }
            ["v1", "containers"] => ManagementRoute::Containers,
            ["v1", "databases", database, "throughput"] => ManagementRoute::Throughput(Owner::Database(database)),
            ["v1", "databases", database, "copy"] => ManagementRoute::CopyDatabase(database),
            ["v1", "jobs"] => ManagementRoute::Jobs,
            ["v1", "jobs", id] => ManagementRoute::Job(id.parse().ok()?),
            ["v1", "jobs", id, "pause"] => ManagementRoute::Pause(id.parse().ok()?),
            ["v1", "jobs", id, "resume"] => ManagementRoute::Resume(id.parse().ok()?),
            ["v1", "throttles"] => ManagementRoute::Throttles,
            ["v1", "metrics"] => ManagementRoute::Metrics,
            ["v1", "alerts"] => ManagementRoute::Alerts,
            ["v1", "topology"] => ManagementRoute::Topology,
            ["v1", "topology", "holds", step] => ManagementRoute::Hold(JobStep::parse(step)?),
            ["v1", "topology", "clock"] => ManagementRoute::Clock,
            _ => return None,
        })
    }

    fn of_container(at: ContainerName<'a>, rest: &[&'a str]) -> Option<ManagementRoute<'a>> {
        Some(match *rest {
            [] => ManagementRoute::Container(at),
            ["partitions"] => ManagementRoute::Partitions(at),
            ["partitions", "split"] => ManagementRoute::Split(at, None),
            ["partitions", "merge"] => ManagementRoute::Merge(at),
            ["partitions", id, "split"] => ManagementRoute::Split(at, Some(id.parse().ok()?)),
            ["partitions", id, "fault"] => ManagementRoute::Fault(at, id.parse().ok()?),
            ["keys"] => ManagementRoute::Keys(at),
            ["statistics"] => ManagementRoute::Statistics(at),
            ["throughput"] => ManagementRoute::Throughput(Owner::Container(at)),
            _ => return None,
        })
    }
}

fn no_such_resource(names: &[&str]) -> Error {
    let hint = match *names {
        ["v1", "topology", "holds", ..] => {
            "A split or merge can be held at prepare, copy, catch-up, fence, publish or drop."
        }
        ["v1", ..] => "docs/management.md lists what there is.",
        _ => "This server knows version 1: /_pleiad/v1/….",
    };
    Error::not_found(format!("The path \"/_pleiad/{}\" names no resource. {hint}", names.join("/")))
}
