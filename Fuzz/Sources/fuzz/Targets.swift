import FoundationEssentials
import HTTPEngine
import HTTPSystem
import HTTPWire

/// A function that must neither trap nor hang for any bytes.
typealias Target = @Sendable (UnsafeRawBufferPointer) -> Void

/// The targets by their names in Scripts/fuzz.
let targets: [String: Target] = [
  "uri": { bytes in
    let text = string(bytes)
    guard let target = WireTarget(text) else { return }
    // An accepted URL does not change if it is parsed again.
    if WireTarget(target.url)?.url != target.url {
      fatalError("\(target.url) is another URL the second time")
    }
  },
  "redirect": { bytes in
    let text = string(bytes)
    let origin = Origin(scheme: "https", host: "a.example", port: nil)
    _ = Redirect.decide(
      status: 302, location: text,
      request: Redirect.Request(
        url: "https://a.example/b/c?d#e", origin: origin, method: "POST", hasBody: true),
      redirectCount: 0, limit: 20, protectedHeaders: [])
  },
  "date": { bytes in
    let text = string(bytes)
    _ = HTTPDate(text, now: now)
    _ = RetryAfter.seconds(of: text, date: text, now: now)
    _ = CookieDate.parse(bytes)
  },
  "cookie": { bytes in
    guard let cookie = try? SetCookie(bytes) else { return }
    let source = CookieTarget(host: "a.example.com", path: "/b/c", isSecure: true)
    _ = source.isCovered(by: cookie.domain ?? "")
    _ = CookieTarget(url: string(bytes))
  },
  "challenge": { bytes in
    let text = string(bytes)
    _ = Challenge.all(in: [text])
    _ = Challenge.all(in: text.split(separator: "\n").map(String.init))
    _ = Netrc(text).credential(host: "a.example")
  },
  "cache": { bytes in
    _ = CacheControl(string(bytes))
    _ = StoredResponse.decode(Data(bytes))
  },
  "proxy": { bytes in
    let text = string(bytes)
    _ = ProxyServer(text, bypass: [text])
    _ = ProxyBypass(ProxyBypass.words(text)).covers(Origin(scheme: "http", host: "a.example", port: nil))
  },
  "http1": { bytes in
    StrictReading.check(bytes)
    HTTP1Reading.check(bytes)
  },
  "http2": { HTTP2Reading.check($0) },
  "tunnel": { TunnelReading.check($0) },
  "response": { bytes in peer?.run(bytes) },
  "hosts": { bytes in
    let text = string(bytes)
    let origin = Origin(scheme: "https", host: "a.example", port: nil)
    let now: Int64 = 1_700_000_000
    var places = AlternativeTable(limit: 8)
    if let field = AlternativeField(text) { _ = places.note(field, of: origin, now: now) }
    _ = places.choice(for: origin, now: now)
    // A serialized table can be parsed again.
    var copy = AlternativeTable(limit: 8)
    if (try? copy.read(text: places.text(now: now))) == nil {
      fatalError("\(text) is written down and not read")
    }
    var hosts = StrictTransportTable(limit: 8)
    if let field = StrictTransportField(text), let host = HostPolicyName("a.example") {
      _ = hosts.note(field, of: host, now: now)
    }
    var kept = StrictTransportTable(limit: 8)
    if (try? kept.read(text: hosts.text(now: now))) == nil {
      fatalError("\(text) is written down and not read")
    }
    _ = try? places.read(text: text)
    _ = try? hosts.read(text: text)
  },
  "names": { bytes in
    for family in [IPAddress.Family.v4, .v6] {
      guard let question = NameMessage.question("a.example", family) else { continue }
      _ = NameMessage.answer(Array(bytes), to: question, family)
      // The prefix that every answer must have.
      let head: [UInt8] = [0, 0, 0x81, 0x80, 0, 1, 0, 2, 0, 0, 0, 0]
      _ = NameMessage.answer(head + question.dropFirst(12) + bytes, to: question, family)
    }
    _ = NameMessage.question(string(bytes), .v4)
  },
  "websocket": { WebSocketReading.check($0) },
  "handshake": { WebSocketOpening.check($0) },
  "events": { EventStreamReading.check($0) },
  "journal": { JournalReading.check($0) },
  "transfers": { TransferAnswers.check($0) },
  "people": { TextForPeople.check($0) },
  "secrets": { TextForPeople.checkRedaction($0) },
  "files": { CommandFiles.check($0) },
  "media": { bytes in
    _ = MediaType(string(bytes))
    _ = try? DataURL(string(bytes))
  },
  "certificate": { bytes in
    let data = Data(bytes)
    guard let certificates = X509Certificate.all(in: data), let anchors = TrustAnchors(certificates) else {
      return
    }
    for certificate in certificates {
      _ = certificate.publicKey
      _ = certificate.subject
      _ = certificate.isSelfSigned
    }
    _ = ChainVerifier(anchors: anchors, host: "a.example").verify(certificates)
    _ = X509PublicKey.all(in: data)
    _ = RevocationLists.of([data])
  },
  "image": ImageReading.check,
  "identity": { bytes in
    let data = Data(bytes)
    _ = ClientIdentity.read(pkcs12: data, passphrase: "")
    _ = ClientIdentity.read(certificates: data, privateKey: data, passphrase: "")
  },
]

/// The peer of all inputs. The first input creates it, on the only thread that runs the targets.
nonisolated(unsafe) private let peer = ScriptedPeer()

private let now = HTTPDate(secondsSince1970: 1_700_000_000)

private func string(_ bytes: UnsafeRawBufferPointer) -> String { String(decoding: bytes, as: UTF8.self) }
