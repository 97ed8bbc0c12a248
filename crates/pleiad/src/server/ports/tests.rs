//! Binding and serving ports, with a made-up protocol on a port of its own.

use std::io::Write;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pleiad_wire::transport::{
    Connection, ConnectionError, ConnectionLimits, Drain, Opening, Protocol, Recognition, Transport,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

const LOCALHOST: [IpAddr; 1] = [IpAddr::V4(Ipv4Addr::LOCALHOST)];

/// Answers every byte with itself.
struct Echo;

impl Protocol for Echo {
    type Variant = ();

    fn recognize(&self, _: &Opening<'_>) -> Recognition<()> {
        Recognition::Yes(())
    }

    async fn serve(&self, (): (), mut connection: Connection) -> std::result::Result<(), ConnectionError> {
        loop {
            let byte = connection.stream.read_u8().await?;
            let _in_flight = connection.state.activity.begin();
            connection.stream.write_all(&[byte]).await?;
        }
    }
}

fn plans(echo: u16, required: bool) -> [PortPlan; 2] {
    let main = PortPlan { name: PortPlan::MAIN, setting: "port", number: 0, required: true };
    [main, PortPlan { name: "echo", setting: "echo-port", number: echo, required }]
}

/// A port that is in use as long as the socket lives.
async fn taken() -> (TcpListener, u16) {
    bind_one(LOCALHOST[0], 0).await.unwrap()
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_protocol_is_served_on_its_own_port() {
    let mut ports = BoundPorts::bind(&LOCALHOST, &plans(0, false)).await.unwrap();
    let (main, echo) = (ports.take(PortPlan::MAIN).unwrap(), ports.take("echo").unwrap());
    assert!(main.number != 0 && echo.number != 0 && main.number != echo.number);
    assert!(ports.take("echo").is_none());
    let drain = Drain::new();
    let mut transport = Transport::new(ConnectionLimits::default(), &drain);
    transport.add_port(echo.sockets, None, Echo);
    tokio::spawn(transport.serve());
    let mut client = TcpStream::connect((LOCALHOST[0], echo.number)).await.unwrap();
    client.write_all(b"x").await.unwrap();
    let answer = tokio::time::timeout(Duration::from_secs(10), client.read_u8()).await;
    assert_eq!(answer.expect("the protocol should have answered").unwrap(), b'x');
}

#[tokio::test]
async fn a_taken_port_that_is_not_required_is_one_warning() {
    let (_socket, number) = taken().await;
    let log = Log::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_ansi(false).with_target(false).with_writer(move || writer.clone()).finish();
    let bound = {
        let _guard = tracing::subscriber::set_default(subscriber);
        BoundPorts::bind(&LOCALHOST, &plans(number, false)).await
    };
    let mut ports = bound.unwrap();
    assert!(ports.take("echo").is_none() && ports.take(PortPlan::MAIN).is_some());
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains(&format!("WARN echo is not served: port {number} is already in use")), "{text}");
}

#[tokio::test]
async fn a_taken_port_that_is_required_is_an_error_with_its_setting() {
    let (_socket, number) = taken().await;
    let error = BoundPorts::bind(&LOCALHOST, &plans(number, true)).await.unwrap_err().to_string();
    assert!(error.contains(&format!("port {number} is already in use")) && error.contains("--echo-port"), "{error}");
}
