//! The listener with real sockets and real clients: what a client observes.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::sniff::{Protocol, sniff};
use super::*;

const BODY_BYTES_MAX: usize = 1000;
/// Long enough to elapse only if the test fails.
const FOREVER: Duration = Duration::from_secs(10);
const A_WHILE: Duration = Duration::from_millis(150);

/// `/` reports how the request arrived; `/echo` returns the body; `/slow` waits to be released.
#[derive(Default)]
struct Parrot {
    entered: Notify,
    release: Notify,
}

impl Service for Parrot {
    async fn call(&self, origin: &ConnectionOrigin, request: Request<Incoming>) -> Response<Full<Bytes>> {
        match request.uri().path() {
            "/echo" => match read_body(request.into_body(), BODY_BYTES_MAX).await {
                Ok(body) => Response::new(Full::new(body)),
                Err(error) => refusal(error),
            },
            "/slow" => {
                self.entered.notify_one();
                self.release.notified().await;
                Response::new(Full::from("at last"))
            }
            path => Response::new(Full::from(format!("{:?} secure={} {path}", request.version(), origin.secure))),
        }
    }
}

fn refusal(error: BodyError) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(format!("{error:?}")));
    *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
    response
}

struct House {
    address: SocketAddr,
    parrot: Arc<Parrot>,
    drain: Drain,
    certificate: rustls::pki_types::CertificateDer<'static>,
}

async fn open(limits: ConnectionLimits) -> House {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let tls = tls_config(made.cert.pem().as_bytes(), made.signing_key.serialize_pem().as_bytes()).unwrap();
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let (parrot, drain) = (Arc::new(Parrot::default()), Drain::new());
    tokio::spawn(serve(socket, Some(tls), limits, parrot.clone(), drain.clone()));
    House { address, parrot, drain, certificate: made.cert.der().clone() }
}

impl House {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    async fn connect_tls(&self, alpn: &[u8]) -> tokio_rustls::client::TlsStream<TcpStream> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let mut config =
            rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_root_certificates(roots)
                .with_no_client_auth();
        config.alpn_protocols = vec![alpn.to_vec()];
        let name = ServerName::try_from("localhost").unwrap();
        tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, self.connect().await).await.unwrap()
    }

    /// Sends raw bytes and returns everything up to the close by the server.
    async fn say(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.unwrap();
        until_closed(&mut stream).await
    }

    async fn still_serves(&self) {
        let answer = self.say(b"GET /ok HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
        assert!(answer.ends_with("HTTP/1.1 secure=false /ok"), "{answer}");
    }
}

/// Everything up to the end of the stream; a reset is an end, too.
async fn until_closed(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut all = Vec::new();
    let _ = timeout(FOREVER, stream.read_to_end(&mut all)).await.expect("the server should have closed the connection");
    String::from_utf8_lossy(&all).into_owned()
}

/// One response with a known end; leaves the connection open.
async fn until(stream: &mut (impl AsyncRead + Unpin), end: &str) -> String {
    let mut all = Vec::new();
    while !all.ends_with(end.as_bytes()) {
        let byte = timeout(FOREVER, stream.read_u8()).await.expect("the server should have answered");
        all.push(byte.unwrap_or_else(|_| panic!("closed after {:?}", String::from_utf8_lossy(&all))));
    }
    String::from_utf8(all).unwrap()
}

async fn get_http2(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> (Version, String) {
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get("http://localhost/two").body(Full::<Bytes>::default()).unwrap();
    let response = sender.send_request(request).await.unwrap();
    let version = response.version();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (version, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn plain_http1_is_kept_alive() {
    let house = open(ConnectionLimits::default()).await;
    let mut stream = house.connect().await;
    for path in ["/one", "/two"] {
        stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
        until(&mut stream, &format!("HTTP/1.1 secure=false {path}")).await;
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let house = open(ConnectionLimits::default()).await;
    let answers = house
        .say(b"POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\nGET /b HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .await;
    let (a, b) = (answers.find("secure=false /a").unwrap(), answers.find("secure=false /b").unwrap());
    assert!(a < b, "{answers}");
}

#[tokio::test]
async fn http2_by_prior_knowledge_on_the_same_port() {
    let house = open(ConnectionLimits::default()).await;
    let got = get_http2(house.connect().await).await;
    assert_eq!(got, (Version::HTTP_2, "HTTP/2.0 secure=false /two".into()));
}

#[tokio::test]
async fn tls_with_http1_on_the_same_port() {
    let house = open(ConnectionLimits::default()).await;
    let mut stream = house.connect_tls(b"http/1.1").await;
    stream.write_all(b"GET /tls HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    until(&mut stream, "HTTP/1.1 secure=true /tls").await;
}

#[tokio::test]
async fn tls_with_http2_on_the_same_port() {
    let house = open(ConnectionLimits::default()).await;
    let stream = house.connect_tls(b"h2").await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    assert_eq!(get_http2(stream).await, (Version::HTTP_2, "HTTP/2.0 secure=true /two".into()));
}

#[tokio::test]
async fn broken_clients_cost_their_own_connection_only() {
    let house = open(ConnectionLimits::default()).await;
    house.say(b"\x00\x01\x02\x03 what is this?\r\n\r\n").await;
    house.say(b"\x16\x03\x01\x00\x05not a hello at all").await;
    house.say(b"PRI * HTTP/2.0\r\n\r\nnot what should follow here").await;
    let mut half = house.connect().await;
    half.write_all(b"\x16\x03\x01\x02\x00\x01\x00").await.unwrap();
    drop(half);
    let reset = house.connect().await;
    reset.set_zero_linger().unwrap();
    drop(reset);
    house.still_serves().await;
}

#[tokio::test]
async fn a_client_that_never_finishes_its_headers_is_dropped() {
    let house = open(ConnectionLimits { header_read_timeout: A_WHILE, ..ConnectionLimits::default() }).await;
    for beginning in ["", "P", "PRI * HT", "GET / HTTP/1.1\r\nhos", "\x16\x03\x01"] {
        house.say(beginning.as_bytes()).await;
    }
    house.still_serves().await;
}

#[tokio::test]
async fn a_trickle_of_bytes_does_not_buy_time() {
    let house = open(ConnectionLimits { header_read_timeout: A_WHILE, ..ConnectionLimits::default() }).await;
    let mut stream = house.connect().await;
    let trickle = async {
        while stream.write_all(b"G").await.is_ok() {
            tokio::time::sleep(A_WHILE / 5).await;
        }
    };
    timeout(FOREVER, trickle).await.expect("the server should have closed the connection");
}

#[tokio::test]
async fn an_idle_connection_outlives_the_header_timeout() {
    let house = open(ConnectionLimits { header_read_timeout: A_WHILE, ..ConnectionLimits::default() }).await;
    let mut stream = house.connect().await;
    for path in ["/before", "/after"] {
        stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
        until(&mut stream, &format!("secure=false {path}")).await;
        tokio::time::sleep(A_WHILE * 2).await;
    }
}

#[tokio::test]
async fn but_not_the_idle_timeout() {
    let house =
        open(ConnectionLimits { header_read_timeout: A_WHILE, idle_timeout: A_WHILE, ..ConnectionLimits::default() })
            .await;
    let answer = house.say(b"GET /once HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(answer.ends_with("secure=false /once"), "{answer}");
}

#[tokio::test]
async fn a_slow_answer_is_not_an_idle_connection() {
    let house =
        open(ConnectionLimits { idle_timeout: A_WHILE, header_read_timeout: A_WHILE, ..ConnectionLimits::default() })
            .await;
    let mut stream = house.connect().await;
    stream.write_all(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    tokio::time::sleep(A_WHILE * 3).await;
    house.parrot.release.notify_one();
    // After the response the connection is idle, and ends.
    assert!(until_closed(&mut stream).await.ends_with("at last"));
}

#[tokio::test]
async fn idle_http2_connections_end_too() {
    let house = open(ConnectionLimits { idle_timeout: A_WHILE, ..ConnectionLimits::default() }).await;
    let mut stream = house.connect().await;
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    until_closed(&mut stream).await;
}

#[tokio::test]
async fn headers_have_a_limit() {
    let house = open(ConnectionLimits { header_bytes_max: 8 * 1024, ..ConnectionLimits::default() }).await;
    let request = format!("GET / HTTP/1.1\r\nhost: x\r\nlong: {}\r\n\r\n", "x".repeat(20 * 1024));
    let answer = house.say(request.as_bytes()).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    house.still_serves().await;
}

#[tokio::test]
async fn a_body_at_the_limit_passes_and_one_above_is_told_so() {
    let house = open(ConnectionLimits::default()).await;
    for (bytes, status) in [(0, "200"), (BODY_BYTES_MAX, "200"), (BODY_BYTES_MAX + 1, "413"), (1_000_000, "413")] {
        let head = format!("POST /echo HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {bytes}\r\n\r\n");
        let answer = house.say(&[head.as_bytes(), &vec![b'x'; bytes]].concat()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{bytes}: {answer}");
    }
}

#[tokio::test]
async fn a_body_without_a_length_is_counted_as_it_comes() {
    let house = open(ConnectionLimits::default()).await;
    for (chunks, status) in [(3, "200"), (30, "413")] {
        let mut request =
            b"POST /echo HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        for _ in 0..chunks {
            request.extend_from_slice(format!("64\r\n{}\r\n", "y".repeat(100)).as_bytes());
        }
        request.extend_from_slice(b"0\r\n\r\n");
        let answer = house.say(&request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{chunks}: {answer}");
        assert_eq!(answer.ends_with(&"y".repeat(300)), status == "200");
    }
}

#[tokio::test]
async fn past_the_limit_connections_wait_their_turn() {
    let house = open(ConnectionLimits { connections_max: 1, ..ConnectionLimits::default() }).await;
    let mut first = house.connect().await;
    first.write_all(b"GET /first HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    until(&mut first, "/first").await;
    let mut second = house.connect().await;
    second.write_all(b"GET /second HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    timeout(A_WHILE, second.read_u8()).await.expect_err("the second connection should wait");
    drop(first);
    until(&mut second, "/second").await;
}

#[tokio::test]
async fn a_client_that_takes_nothing_of_its_answers_gives_its_place_back() {
    let limits = ConnectionLimits { connections_max: 1, header_read_timeout: A_WHILE, ..ConnectionLimits::default() };
    let house = open(limits).await;
    // More responses than all buffers between server and client hold, and no reader.
    let mut greedy = house.connect().await;
    let question = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "long".repeat(10_000));
    let asking = tokio::spawn(async move { while greedy.write_all(question.as_bytes()).await.is_ok() {} });
    let mut second = house.connect().await;
    second.write_all(b"GET /second HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    until(&mut second, "/second").await;
    asking.await.unwrap();
}

#[tokio::test]
async fn a_drain_lets_a_request_finish_and_takes_no_other() {
    let house = open(ConnectionLimits::default()).await;
    let mut busy = house.connect().await;
    busy.write_all(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    house.parrot.entered.notified().await;
    let mut idle = house.connect().await;
    idle.write_all(b"GET /idle HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    until(&mut idle, "/idle").await;

    house.drain.begin();
    assert_eq!(until_closed(&mut idle).await, "");
    assert!(!house.drain.wait(A_WHILE).await, "a request is still in progress");
    assert!(TcpStream::connect(house.address).await.is_err(), "the listener must not accept new connections");
    house.parrot.release.notify_one();
    assert!(until_closed(&mut busy).await.ends_with("at last"));
    assert!(house.drain.wait(FOREVER).await);
}

#[tokio::test]
async fn a_drain_finishes_http2_requests_too() {
    let house = open(ConnectionLimits::default()).await;
    let client = tokio::spawn({
        let stream = house.connect().await;
        async move {
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
            tokio::spawn(connection);
            let request = Request::get("http://localhost/slow").body(Full::<Bytes>::default()).unwrap();
            sender.send_request(request).await.unwrap().into_body().collect().await.unwrap().to_bytes()
        }
    });
    house.parrot.entered.notified().await;
    house.drain.begin();
    house.parrot.release.notify_one();
    assert_eq!(client.await.unwrap(), "at last");
    assert!(house.drain.wait(FOREVER).await);
}

#[tokio::test]
async fn a_drain_does_not_wait_for_clients_that_ask_nothing() {
    let house = open(ConnectionLimits::default()).await;
    let _silent = house.connect().await;
    let _greeted = house.connect_tls(b"http/1.1").await;
    house.drain.begin();
    assert!(house.drain.wait(FOREVER).await);
}

#[tokio::test]
async fn first_bytes_decide_and_are_not_lost() {
    for (bytes, want) in [
        (&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], Protocol::Http2),
        (b"POST / HTTP/1.1\r\n\r\n", Protocol::Http1),
        (b"PRIVATE / HTTP/1.1\r\n\r\n", Protocol::Http1),
        (b"GET / HTTP/1.1\r\n\r\n", Protocol::Http1),
        (b"\x16\x03\x01\x02\x00\x01", Protocol::Tls),
        (b"\x00", Protocol::Http1),
    ] {
        let (mut client, server) = tokio::io::duplex(1);
        let sending = tokio::spawn(async move { client.write_all(bytes).await });
        let (protocol, mut stream) = sniff(server).await.unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.unwrap();
        sending.await.unwrap().unwrap();
        assert_eq!((protocol, &all[..]), (want, bytes));
    }
}

#[test]
fn a_certificate_that_is_none_is_explained() {
    for (certificate, key) in
        [("", ""), ("not PEM", "not PEM"), ("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----", "")]
    {
        let error = tls_config(certificate.as_bytes(), key.as_bytes()).unwrap_err();
        assert!(error.message.starts_with("TLS cannot be set up"), "{error}");
    }
}
