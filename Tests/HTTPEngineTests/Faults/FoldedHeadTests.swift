import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

/// Responses whose first field line begins with white space. libcurl 7.83 to 8.0 appends such a line to the last field of
/// the handle's previous transfer, whose memory is free by then.
@Suite(.timeLimit(.minutes(5))) struct FoldedHeadTests {
  private static let folded =
    "HTTP/1.1 200 OK\r\n folded: value that is long enough to move\r\nContent-Length: 0\r\n\r\n"

  @Test(arguments: [false, true])
  func aFoldedFirstFieldIsNoDangerToTheNextRequests(isTLS: Bool) async throws {
    let server = try HTTPTestServer(isTLS ? .tls(.localhost) : .none, routes: .none)
    let client = Client()
    for round in 0..<40 {
      server.enqueue(.text("before \(round)"), .raw(Self.folded), .text("after \(round)"))
      #expect(try await client.get(server.url("/")).text == "before \(round)")
      // A response or an error, by the version of libcurl; never the field of another response.
      if let response = try? await client.get(server.url("/")) {
        #expect(response.text.isEmpty)
      }
      #expect(try await client.get(server.url("/")).text == "after \(round)")
    }
  }

  @Test func aFoldedFirstFieldOfAProxyIsNoDanger() async throws {
    let origin = try HTTPTestServer(.tls(.localhost))
    let proxy = try StreamTestServer { connection in
      _ = try connection.readRequest()
      try connection.write(
        "HTTP/1.1 407 No\r\n folded: value that is long enough to move\r\nContent-Length: 0\r\n\r\n")
    }
    let plain = try HTTPTestServer()
    let client = Client()
    let proxied = Client.profile {
      $0.proxy = .server(ProxyServer(.http, host: "127.0.0.1", port: proxy.port))
    }
    for _ in 0..<40 {
      #expect(try await client.get(plain.url("/get")).status == 200)
      _ = try await client.failure(of: client.request(origin.url("/get"), profile: proxied))
    }
  }

  @Test func aFoldedFirstFieldAfterARedirectIsNoDanger() async throws {
    let server = try HTTPTestServer(routes: .none)
    let client = Client()
    for _ in 0..<40 {
      server.enqueue(
        .raw("HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n"), .raw(Self.folded))
      #expect(try await client.get(server.url("/")).status == 302)
      _ = try? await client.get(server.url("/next"))
    }
  }
}
