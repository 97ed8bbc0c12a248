//! Binding: opens the sockets of all planned ports.
//!
//! Guarantees: a required port is bound on the first address, or the server does not start. Another port that cannot be
//! bound is one warning, and its protocol is not served.

#[cfg(test)]
mod tests;

use std::io;
use std::net::IpAddr;

use pleiad_model::{Error, Result};
use tokio::net::TcpListener;

use crate::config::PortPlan;

/// A port with its sockets, one for each address of the machine that it is bound on.
#[derive(Debug)]
pub struct BoundPort {
    pub name: &'static str,
    pub number: u16,
    pub sockets: Vec<TcpListener>,
}

/// The bound ports, each taken by the protocol that serves it.
#[derive(Debug)]
pub struct BoundPorts(Vec<BoundPort>);

impl BoundPorts {
    pub async fn bind(addresses: &[IpAddr], plans: &[PortPlan]) -> Result<BoundPorts> {
        let mut bound = Vec::with_capacity(plans.len());
        for plan in plans {
            match bind_port(addresses, plan).await {
                Ok(port) => bound.push(port),
                Err(error) if plan.required => return Err(error),
                Err(error) => tracing::warn!("{} is not served: {error}", plan.name),
            }
        }
        Ok(BoundPorts(bound))
    }

    /// `None` if the port was not planned, or could not be bound and is not required.
    pub fn take(&mut self, name: &str) -> Option<BoundPort> {
        let index = self.0.iter().position(|port| port.name == name)?;
        Some(self.0.swap_remove(index))
    }
}

/// The first address must be bound. The others are aliases of it (`::1` beside `127.0.0.1`) and are bound where the
/// machine has them.
async fn bind_port(addresses: &[IpAddr], plan: &PortPlan) -> Result<BoundPort> {
    let mut port = BoundPort { name: plan.name, number: plan.number, sockets: Vec::new() };
    for &address in addresses {
        match bind_one(address, port.number).await {
            Ok((socket, number)) => {
                port.number = number;
                port.sockets.push(socket);
            }
            Err(error) if port.sockets.is_empty() => return Err(cannot_bind(address, plan, &error)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                let port = port.number;
                tracing::warn!(%address, port, "another program uses this port on this address: clients that try the address first reach that program");
            }
            Err(error) => tracing::debug!(%address, %error, "cannot listen on this additional address"),
        }
    }
    Ok(port)
}

async fn bind_one(address: IpAddr, port: u16) -> io::Result<(TcpListener, u16)> {
    let socket = TcpListener::bind((address, port)).await?;
    let bound = socket.local_addr()?.port();
    Ok((socket, bound))
}

fn cannot_bind(address: IpAddr, plan: &PortPlan, error: &io::Error) -> Error {
    let PortPlan { number, setting, .. } = plan;
    match error.kind() {
        io::ErrorKind::AddrInUse => Error::unavailable(format!(
            "port {number} is already in use: stop what uses it, or choose another with --{setting} (0 takes any free one)."
        )),
        io::ErrorKind::PermissionDenied => Error::unavailable(format!(
            "port {number} may not be opened by this user: choose one above 1023 with --{setting}."
        )),
        _ => Error::unavailable(format!("cannot listen on {address} port {number}: {error}")),
    }
}
