//! Trusted proxies: the peers whose `x-forwarded-` headers count.
//!
//! Invariant: a client that connects directly cannot choose the addresses in the account document by these headers.
//! Without configuration only peers on this machine are trusted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// All addresses that share the first `prefix_bits` with `address`: `10.0.0.0/8`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpNetwork {
    address: IpAddr,
    prefix_bits: u8,
}

impl IpNetwork {
    /// `None` if the text is neither an address nor an address with the length of its prefix.
    pub fn parse(text: &str) -> Option<IpNetwork> {
        let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let address: IpAddr = address.trim_matches(['[', ']']).parse().ok()?;
        let bits_max = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = prefix.map_or(Some(bits_max), |prefix| prefix.parse().ok())?;
        (prefix_bits <= bits_max).then_some(IpNetwork { address, prefix_bits })
    }

    pub fn contains(&self, peer: IpAddr) -> bool {
        // The highest bits first, so that a prefix is compared by shifting the rest away.
        let (own, other) = match (self.address, peer.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(peer)) => (u128::from(own.to_bits()) << 96, u128::from(peer.to_bits()) << 96),
            (IpAddr::V6(own), IpAddr::V6(peer)) => (own.to_bits(), peer.to_bits()),
            _ => return false,
        };
        let rest = 128 - u32::from(self.prefix_bits);
        (own ^ other).checked_shr(rest).unwrap_or(0) == 0
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNetwork>);

impl Default for TrustedProxies {
    /// Processes on this machine: a proxy in front of a server usually runs beside it.
    fn default() -> Self {
        let v4 = IpNetwork { address: Ipv4Addr::LOCALHOST.into(), prefix_bits: 8 };
        TrustedProxies(vec![v4, IpNetwork { address: Ipv6Addr::LOCALHOST.into(), prefix_bits: 128 }])
    }
}

impl TrustedProxies {
    /// The default if `configured` is empty.
    pub fn new(configured: Vec<IpNetwork>) -> TrustedProxies {
        if configured.is_empty() { TrustedProxies::default() } else { TrustedProxies(configured) }
    }

    pub fn contain(&self, peer: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(peer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contain(networks: &[&str], peer: &str) -> bool {
        let networks = networks.iter().map(|text| IpNetwork::parse(text).unwrap()).collect();
        TrustedProxies::new(networks).contain(peer.parse().unwrap())
    }

    #[test]
    fn only_this_machine_is_trusted_by_default() {
        for peer in ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"] {
            assert!(contain(&[], peer), "{peer}");
        }
        for peer in ["10.0.0.1", "192.168.0.7", "::2", "::ffff:10.0.0.1"] {
            assert!(!contain(&[], peer), "{peer}");
        }
    }

    #[test]
    fn configured_networks_replace_the_default() {
        let networks = ["10.1.0.0/16", "192.168.0.7", "fd00::/8"];
        for peer in ["10.1.255.9", "192.168.0.7", "fdab::1", "::ffff:10.1.0.1"] {
            assert!(contain(&networks, peer), "{peer}");
        }
        for peer in ["127.0.0.1", "10.2.0.1", "192.168.0.8", "fe00::1"] {
            assert!(!contain(&networks, peer), "{peer}");
        }
        assert!(contain(&["0.0.0.0/0"], "8.8.8.8") && !contain(&["0.0.0.0/0"], "::1"));
        assert!(contain(&["::/0"], "fe00::1"));
    }

    #[test]
    fn a_network_is_an_address_with_an_optional_prefix() {
        for wrong in ["", "proxy", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0/8", "10.0.0.0/-1"] {
            assert_eq!(IpNetwork::parse(wrong), None, "{wrong}");
        }
    }
}
