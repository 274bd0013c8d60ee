import FoundationEssentials
import HTTPTestServer
import HTTPWire
import Testing

@testable import HTTPEngine

@Suite("Versions and cipher suites of TLS", .timeLimit(.minutes(5))) struct TLSParameterTests {
  typealias Version = TransportOptions.TLSVersion

  @Test(
    "The version is the newest that both sides allow",
    arguments: [
      (Version.tls12, nil, TLSOptions.Version.tls1_3, "TLSv1.3"), (.tls12, .tls12, .tls1_3, "TLSv1.2"),
      (.tls12, .tls13, .tls1_3, "TLSv1.3"), (.tls13, .tls13, .tls1_3, "TLSv1.3"),
      (.tls13, nil, .tls1_3, "TLSv1.3"), (.tls12, nil, .tls1_2, "TLSv1.2"),
    ] as [(Version, Version?, TLSOptions.Version, String)])
  func version(oldest: Version, newest: Version?, server: TLSOptions.Version, negotiated: String) async throws
  {
    let server = try HTTPTestServer(.tls(.localhost, TLSOptions(maximumVersion: server)))
    let client = Client {
      $0.minimumTLSVersion = oldest
      $0.maximumTLSVersion = newest
    }
    let response = try await client.get(server.url("/get"))
    #expect(response.metrics.tlsVersion == negotiated)
    #expect(try await server.takeRequest().tls?.version == negotiated)
  }

  @Test("A server that is newer than the maximum is refused")
  func tooNew() async throws {
    let server = try HTTPTestServer(.tls(.localhost, TLSOptions(minimumVersion: .tls1_3)))
    let failure = try await Client { $0.maximumTLSVersion = .tls12 }.failure(of: server.url("/get"))
    #expect(failure.kind == .secureConnectionFailed)
    #expect(failure.message.contains("speaks TLS 1.2 (maximumTLSVersion)."), "\(failure.message)")
    #expect(server.requestCount == 0)
  }

  @Test(
    "The ciphers of TLS 1.2 come from the options",
    arguments: [
      ("ECDHE-ECDSA-AES128-GCM-SHA256", 0xC02B), ("ECDHE-ECDSA-AES256-GCM-SHA384", 0xC02C),
      ("ECDHE-ECDSA-CHACHA20-POLY1305", 0xCCA9),
    ] as [(String, UInt16)])
  func ciphers(name: String, number: UInt16) async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let client = Client {
      $0.maximumTLSVersion = .tls12
      $0.tls12Ciphers = name
    }
    #expect(try await client.get(server.url("/get")).metrics.tlsCipher == number)
    #expect(try await server.takeRequest().tls?.cipher == name)
  }

  @Test(
    "The cipher suites of TLS 1.3 come from the options",
    arguments: [
      ("TLS_AES_128_GCM_SHA256", 0x1301), ("TLS_AES_256_GCM_SHA384", 0x1302),
      ("TLS_CHACHA20_POLY1305_SHA256", 0x1303),
    ] as [(String, UInt16)])
  func suites(name: String, number: UInt16) async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let client = Client {
      // A list for one version says nothing about the other.
      $0.tls12Ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256"
      $0.tls13CipherSuites = name
    }
    #expect(try await client.get(server.url("/get")).metrics.tlsCipher == number)
    #expect(try await server.takeRequest().tls?.cipher == name)
  }

  @Test(
    "A server without a certificate is refused, whatever the ciphers", arguments: [nil, "ALL:@SECLEVEL=0"])
  func anonymous(ciphers: String?) async throws {
    var options = TLSOptions(maximumVersion: .tls1_2)
    options.isAnonymous = true
    let server = try HTTPTestServer(.tls(.localhost, options))
    let failure = try await Client { $0.tls12Ciphers = ciphers }.failure(of: server.url("/get"))
    #expect(failure.kind == .secureConnectionFailed, "\(failure)")
    #expect(server.requestCount == 0)
  }

  @Test("The advice after a failed handshake names the options that differ from their defaults")
  func advice() {
    func requirement(_ change: (inout TransportOptions) -> Void = { _ in }) -> String {
      TLSSettings(Client.profile(6, change).options, isForProxy: false).requirement
    }
    #expect(requirement() == "TLS 1.2 or later")
    #expect(requirement { $0.minimumTLSVersion = .tls13 } == "TLS 1.3 (minimumTLSVersion)")
    #expect(requirement { $0.maximumTLSVersion = .tls12 } == "TLS 1.2 (maximumTLSVersion)")
    #expect(requirement { $0.tls12Ciphers = "x" } == "TLS 1.2 or later with a cipher of tls12Ciphers")
    let both = requirement {
      $0.tls12Ciphers = "x"
      $0.tls13CipherSuites = "y"
    }
    #expect(both == "TLS 1.2 or later with a cipher of tls12Ciphers or tls13CipherSuites")
    let newest = requirement {
      $0.minimumTLSVersion = .tls13
      $0.tls12Ciphers = "x"
      $0.tls13CipherSuites = "y"
    }
    #expect(newest == "TLS 1.3 (minimumTLSVersion) with a cipher of tls13CipherSuites")
    let ofProxy = TLSSettings(Client.profile { $0.minimumTLSVersion = .tls13 }.options, isForProxy: true)
    #expect(ofProxy.requirement == "TLS 1.2 or later")
  }

  @Test("A list without a known cipher ends the request")
  func unknownCiphers() async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    for change: @Sendable (inout TransportOptions) -> Void in [
      { $0.tls12Ciphers = "no such cipher" }, { $0.tls13CipherSuites = "no such suite" },
    ] {
      let failure = try await Client { change(&$0) }.failure(of: server.url("/get"))
      #expect(failure.kind == .secureConnectionFailed, "\(failure)")
    }
    #expect(server.requestCount == 0)
  }
}
