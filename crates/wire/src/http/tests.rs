//! HTTP with real sockets and real clients: what a client observes.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use super::*;
use crate::transport::tests::client::{A_WHILE, FOREVER, TestTls, bind, get_http2, send, until, until_closed};
use crate::transport::{ConnectionLimits, Drain, Transport};

const BODY_BYTES_MAX: usize = 1000;

/// `/` reports how the request arrived; `/echo` returns the body; `/slow` waits to be released.
#[derive(Default)]
pub(crate) struct TestService {
    pub(crate) entered: Notify,
    pub(crate) release: Notify,
}

impl Service for TestService {
    async fn call(&self, connection: &ConnectionState, request: Request<Incoming>) -> Response<Full<Bytes>> {
        match request.uri().path() {
            "/echo" => match read_body(request.into_body(), BODY_BYTES_MAX, &connection.memory).await {
                Ok(body) => Response::new(Full::new(body.bytes)),
                Err(error) => refusal(error),
            },
            "/slow" => {
                self.entered.notify_one();
                self.release.notified().await;
                Response::new(Full::from("at last"))
            }
            path => {
                let secure = connection.origin.secure;
                Response::new(Full::from(format!("{:?} secure={secure} {path}", request.version())))
            }
        }
    }
}

fn refusal(error: BodyError) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(format!("{error:?}")));
    *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
    response
}

struct TestServer {
    address: SocketAddr,
    service: Arc<TestService>,
    drain: Drain,
    tls: TestTls,
}

async fn open(limits: ConnectionLimits) -> TestServer {
    open_with(limits, HttpLimits::default()).await
}

async fn open_with(limits: ConnectionLimits, http_limits: HttpLimits) -> TestServer {
    let tls = TestTls::new();
    let (socket, address) = bind().await;
    let (service, drain) = (Arc::new(TestService::default()), Drain::new());
    let mut transport = Transport::new(limits, &drain);
    transport.add_port([socket], Some(&tls.config), Http::new(service.clone(), http_limits));
    tokio::spawn(transport.serve());
    TestServer { address, service, drain, tls }
}

impl TestServer {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    async fn connect_tls(&self, alpn: &[u8]) -> TlsStream<TcpStream> {
        self.tls.connect(self.address, &[alpn]).await
    }

    async fn send(&self, bytes: &[u8]) -> String {
        send(self.address, bytes).await
    }

    async fn still_serves(&self) {
        let answer = self.send(b"GET /ok HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
        assert!(answer.ends_with("HTTP/1.1 secure=false /ok"), "{answer}");
    }
}

#[tokio::test]
async fn plain_http1_is_kept_alive() {
    let server = open(ConnectionLimits::default()).await;
    let mut stream = server.connect().await;
    for path in ["/one", "/two"] {
        stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
        until(&mut stream, &format!("HTTP/1.1 secure=false {path}")).await;
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = open(ConnectionLimits::default()).await;
    let answers = server
        .send(b"POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\nGET /b HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .await;
    let (a, b) = (answers.find("secure=false /a").unwrap(), answers.find("secure=false /b").unwrap());
    assert!(a < b, "{answers}");
}

#[tokio::test]
async fn http2_by_prior_knowledge_on_the_same_port() {
    let server = open(ConnectionLimits::default()).await;
    let got = get_http2(server.connect().await).await;
    assert_eq!(got, (Version::HTTP_2, "HTTP/2.0 secure=false /two".into()));
}

#[tokio::test]
async fn tls_with_http1_on_the_same_port() {
    let server = open(ConnectionLimits::default()).await;
    let mut stream = server.connect_tls(b"http/1.1").await;
    stream.write_all(b"GET /tls HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    until(&mut stream, "HTTP/1.1 secure=true /tls").await;
}

#[tokio::test]
async fn tls_with_http2_on_the_same_port() {
    let server = open(ConnectionLimits::default()).await;
    let stream = server.connect_tls(b"h2").await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    assert_eq!(get_http2(stream).await, (Version::HTTP_2, "HTTP/2.0 secure=true /two".into()));
}

#[tokio::test]
async fn broken_clients_cost_their_own_connection_only() {
    let server = open(ConnectionLimits::default()).await;
    server.send(b"\x00\x01\x02\x03 what is this?\r\n\r\n").await;
    server.send(b"\x16\x03\x01\x00\x05not a hello at all").await;
    server.send(b"PRI * HTTP/2.0\r\n\r\nnot what should follow here").await;
    let mut half = server.connect().await;
    half.write_all(b"\x16\x03\x01\x02\x00\x01\x00").await.unwrap();
    drop(half);
    let reset = server.connect().await;
    reset.set_zero_linger().unwrap();
    drop(reset);
    server.still_serves().await;
}

#[tokio::test]
async fn a_client_that_never_finishes_its_headers_is_dropped() {
    let server = open(ConnectionLimits { slow_client_timeout: A_WHILE, ..ConnectionLimits::default() }).await;
    for beginning in ["", "P", "PRI * HT", "GET / HTTP/1.1\r\nhos", "\x16\x03\x01"] {
        server.send(beginning.as_bytes()).await;
    }
    server.still_serves().await;
}

#[tokio::test]
async fn a_trickle_of_bytes_does_not_buy_time() {
    let server = open(ConnectionLimits { slow_client_timeout: A_WHILE, ..ConnectionLimits::default() }).await;
    let mut stream = server.connect().await;
    let trickle = async {
        while stream.write_all(b"G").await.is_ok() {
            tokio::time::sleep(A_WHILE / 5).await;
        }
    };
    timeout(FOREVER, trickle).await.expect("the server should have closed the connection");
}

#[tokio::test]
async fn an_idle_connection_outlives_the_slow_client_timeout() {
    let server = open(ConnectionLimits { slow_client_timeout: A_WHILE, ..ConnectionLimits::default() }).await;
    let mut stream = server.connect().await;
    for path in ["/before", "/after"] {
        stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
        until(&mut stream, &format!("secure=false {path}")).await;
        tokio::time::sleep(A_WHILE * 2).await;
    }
}

#[tokio::test]
async fn but_not_the_idle_timeout() {
    let server =
        open(ConnectionLimits { slow_client_timeout: A_WHILE, idle_timeout: A_WHILE, ..ConnectionLimits::default() })
            .await;
    let answer = server.send(b"GET /once HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(answer.ends_with("secure=false /once"), "{answer}");
}

#[tokio::test]
async fn a_slow_answer_is_not_an_idle_connection() {
    let server =
        open(ConnectionLimits { idle_timeout: A_WHILE, slow_client_timeout: A_WHILE, ..ConnectionLimits::default() })
            .await;
    let mut stream = server.connect().await;
    stream.write_all(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    tokio::time::sleep(A_WHILE * 3).await;
    server.service.release.notify_one();
    // After the response the connection is idle, and ends.
    assert!(until_closed(&mut stream).await.ends_with("at last"));
}

#[tokio::test]
async fn idle_http2_connections_end_too() {
    let server = open(ConnectionLimits { idle_timeout: A_WHILE, ..ConnectionLimits::default() }).await;
    let mut stream = server.connect().await;
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    until_closed(&mut stream).await;
}

#[tokio::test]
async fn headers_have_a_limit() {
    let server =
        open_with(ConnectionLimits::default(), HttpLimits { header_bytes_max: 8 * 1024, ..HttpLimits::default() })
            .await;
    let request = format!("GET / HTTP/1.1\r\nhost: x\r\nlong: {}\r\n\r\n", "x".repeat(20 * 1024));
    let answer = server.send(request.as_bytes()).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    server.still_serves().await;
}

#[tokio::test]
async fn a_body_at_the_limit_passes_and_one_above_is_told_so() {
    let server = open(ConnectionLimits::default()).await;
    for (bytes, status) in [(0, "200"), (BODY_BYTES_MAX, "200"), (BODY_BYTES_MAX + 1, "413"), (1_000_000, "413")] {
        let head = format!("POST /echo HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {bytes}\r\n\r\n");
        let answer = server.send(&[head.as_bytes(), &vec![b'x'; bytes]].concat()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{bytes}: {answer}");
    }
}

#[tokio::test]
async fn a_body_without_a_length_is_counted_as_it_comes() {
    let server = open(ConnectionLimits::default()).await;
    for (chunks, status) in [(3, "200"), (30, "413")] {
        let mut request =
            b"POST /echo HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        for _ in 0..chunks {
            request.extend_from_slice(format!("64\r\n{}\r\n", "y".repeat(100)).as_bytes());
        }
        request.extend_from_slice(b"0\r\n\r\n");
        let answer = server.send(&request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{chunks}: {answer}");
        assert_eq!(answer.ends_with(&"y".repeat(300)), status == "200");
    }
}

#[tokio::test]
async fn past_the_limit_connections_wait_their_turn() {
    let server = open(ConnectionLimits { connections_max: 1, ..ConnectionLimits::default() }).await;
    let mut first = server.connect().await;
    first.write_all(b"GET /first HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    until(&mut first, "/first").await;
    let mut second = server.connect().await;
    second.write_all(b"GET /second HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    timeout(A_WHILE, second.read_u8()).await.expect_err("the second connection should wait");
    drop(first);
    until(&mut second, "/second").await;
}

#[tokio::test]
async fn a_client_that_takes_nothing_of_its_answers_gives_its_place_back() {
    let limits = ConnectionLimits { connections_max: 1, slow_client_timeout: A_WHILE, ..ConnectionLimits::default() };
    let server = open(limits).await;
    // More responses than all buffers between server and client hold, and no reader.
    let mut greedy = server.connect().await;
    let question = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "long".repeat(10_000));
    let asking = tokio::spawn(async move { while greedy.write_all(question.as_bytes()).await.is_ok() {} });
    let mut second = server.connect().await;
    second.write_all(b"GET /second HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    until(&mut second, "/second").await;
    asking.await.unwrap();
}

#[tokio::test]
async fn a_drain_lets_a_request_finish_and_takes_no_other() {
    let server = open(ConnectionLimits::default()).await;
    let mut busy = server.connect().await;
    busy.write_all(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    server.service.entered.notified().await;
    let mut idle = server.connect().await;
    idle.write_all(b"GET /idle HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    until(&mut idle, "/idle").await;

    server.drain.begin();
    assert_eq!(until_closed(&mut idle).await, "");
    assert!(!server.drain.wait(A_WHILE).await, "a request is still in progress");
    assert!(TcpStream::connect(server.address).await.is_err(), "the server must not accept new connections");
    server.service.release.notify_one();
    assert!(until_closed(&mut busy).await.ends_with("at last"));
    assert!(server.drain.wait(FOREVER).await);
}

#[tokio::test]
async fn a_drain_finishes_http2_requests_too() {
    let server = open(ConnectionLimits::default()).await;
    let client = tokio::spawn({
        let stream = server.connect().await;
        async move {
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
            tokio::spawn(connection);
            let request = Request::get("http://localhost/slow").body(Full::<Bytes>::default()).unwrap();
            sender.send_request(request).await.unwrap().into_body().collect().await.unwrap().to_bytes()
        }
    });
    server.service.entered.notified().await;
    server.drain.begin();
    server.service.release.notify_one();
    assert_eq!(client.await.unwrap(), "at last");
    assert!(server.drain.wait(FOREVER).await);
}

#[tokio::test]
async fn a_drain_does_not_wait_for_clients_that_ask_nothing() {
    let server = open(ConnectionLimits::default()).await;
    let _silent = server.connect().await;
    let _connected = server.connect_tls(b"http/1.1").await;
    server.drain.begin();
    assert!(server.drain.wait(FOREVER).await);
}

#[tokio::test]
async fn tls_without_alpn_is_told_apart_by_its_first_bytes() {
    let server = open(ConnectionLimits::default()).await;
    let mut stream = server.tls.connect(server.address, &[]).await;
    stream.write_all(b"GET /tls HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    until(&mut stream, "HTTP/1.1 secure=true /tls").await;
    let got = get_http2(server.tls.connect(server.address, &[]).await).await;
    assert_eq!(got, (Version::HTTP_2, "HTTP/2.0 secure=true /two".into()));
}

#[test]
fn alpn_and_first_bytes_tell_the_versions_apart() {
    use HttpVersion::{Http1, Http2};
    use Recognition::{MoreBytes, Yes};
    for (alpn, first_bytes, want) in [
        (None, &b"PRI * HTTP/2.0"[..], Yes(Http2)),
        (None, b"PRI * HTTP/2.0\r\n", Yes(Http2)),
        (None, b"PRI * HTTP/2.", MoreBytes),
        (None, b"P", MoreBytes),
        (None, b"", MoreBytes),
        (None, b"POST", Yes(Http1)),
        (None, b"PRIVATE", Yes(Http1)),
        (None, b"GET", Yes(Http1)),
        (None, b"\x00", Yes(Http1)),
        (Some(&b"h2"[..]), b"", Yes(Http2)),
        (Some(b"http/1.1"), b"", Yes(Http1)),
    ] {
        assert_eq!(recognize(&Opening { alpn, first_bytes }), want, "{alpn:?} {first_bytes:?}");
    }
}
