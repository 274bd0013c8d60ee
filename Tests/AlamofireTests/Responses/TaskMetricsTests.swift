import Alamofire
import Foundation
import HTTPWire
import Testing

@Suite struct TaskMetricsTests {
  static func fresh() -> TransferMetrics.Values {
    var values = TransferMetrics.Values()
    values.start = 1_000
    values.lookupEnd = 1_000
    values.connectEnd = 3_000
    values.secureEnd = 15_040
    values.requestStart = 15_100
    values.requestEnd = 15_200
    values.responseStart = 23_000
    values.end = 25_500
    values.requestHeaderBytes = 120
    values.requestBodyBytes = 7
    values.responseHeaderBytes = 210
    values.responseBodyBytes = 5_000
    values.decodedBodyBytes = 20_000
    values.localPort = 50_000
    values.remotePort = 443
    return values
  }

  static func reused() -> TransferMetrics.Values {
    var values = fresh()
    values.start = 1_001
    values.lookupEnd = -1
    values.connectEnd = -1
    values.secureEnd = -1
    values.requestStart = 10
    values.requestEnd = 20
    values.responseStart = 1_000
    values.end = 2_000
    values.isReusedConnection = true
    values.decodedBodyBytes = 5_000
    return values
  }

  /// Returns the values of an upload that a response has stopped after 20 ms.
  static func early() -> TransferMetrics.Values {
    var values = reused()
    values.queueEnd = 0
    values.requestStart = 5_000
    values.requestEnd = -1
    values.responseStart = 25_000
    values.end = 26_000
    return values
  }

  static func hop(_ values: TransferMetrics.Values, status: Int?, path: String = "/a") -> Exchange.Hop {
    let transfer = TransferMetrics(
      values: values, version: .http2,
      connection: ConnectionDetails(
        localAddress: "10.0.0.2", remoteAddress: "10.0.0.1", tlsVersion: "TLSv1.3", tlsCipher: 0x1302))
    return Exchange.Hop(
      url: "https://h.example\(path)", method: "POST", fields: [HTTPHeader(name: "X-A", value: "b")],
      metrics: transfer, head: status.map { ResponseHead(status: $0, fields: []) })
  }

  static func metrics(_ hops: [Exchange.Hop]) throws -> TaskMetrics {
    let exchange = Exchange(
      url: URL(string: "https://h.example/a"), head: hops.last?.head, hops: ShortList(hops))
    return try #require(exchange.metrics)
  }

  static func milliseconds(_ date: Date?) -> Double? {
    date.map { (($0.timeIntervalSince1970 - 1_000) * 1_000_000).rounded() / 1_000 }
  }

  @Test("A new connection has all dates") func newConnection() throws {
    let transaction = try #require(
      try Self.metrics([Self.hop(Self.fresh(), status: 200)]).transactionMetrics.first)
    #expect(Self.milliseconds(transaction.fetchStartDate) == 0)
    #expect(Self.milliseconds(transaction.domainLookupStartDate) == 0)
    #expect(Self.milliseconds(transaction.domainLookupEndDate) == 1)
    #expect(Self.milliseconds(transaction.connectStartDate) == 1)
    #expect(Self.milliseconds(transaction.connectEndDate) == 15.04)
    #expect(Self.milliseconds(transaction.secureConnectionStartDate) == 3)
    #expect(Self.milliseconds(transaction.secureConnectionEndDate) == 15.04)
    #expect(Self.milliseconds(transaction.requestStartDate) == 15.1)
    #expect(Self.milliseconds(transaction.requestEndDate) == 15.2)
    #expect(Self.milliseconds(transaction.responseStartDate) == 23)
    #expect(Self.milliseconds(transaction.responseEndDate) == 25.5)
  }

  @Test("A reused connection has no dates of its handshakes") func reusedConnection() throws {
    let transaction = try #require(
      try Self.metrics([Self.hop(Self.reused(), status: 200)]).transactionMetrics.first)
    #expect(transaction.domainLookupStartDate == nil)
    #expect(transaction.domainLookupEndDate == nil)
    #expect(transaction.connectStartDate == nil)
    #expect(transaction.connectEndDate == nil)
    #expect(transaction.secureConnectionStartDate == nil)
    #expect(transaction.secureConnectionEndDate == nil)
    #expect(transaction.requestStartDate != nil)
    #expect(transaction.isReusedConnection)
  }

  @Test("Other values come from the transport") func otherValues() throws {
    let transaction = try #require(
      try Self.metrics([Self.hop(Self.fresh(), status: 201)]).transactionMetrics.first)
    #expect(transaction.request.url?.absoluteString == "https://h.example/a")
    #expect(transaction.request.httpMethod == "POST")
    #expect(transaction.request.value(forHTTPHeaderField: "x-a") == "b")
    #expect((transaction.response as? HTTPURLResponse)?.statusCode == 201)
    #expect(transaction.networkProtocolName == "h2")
    #expect(transaction.resourceFetchType == .networkLoad)
    #expect(!transaction.isProxyConnection)
    #expect(!transaction.isReusedConnection)
    #expect(transaction.countOfRequestHeaderBytesSent == 120)
    #expect(transaction.countOfRequestBodyBytesSent == 7)
    #expect(transaction.countOfRequestBodyBytesBeforeEncoding == 7)
    #expect(transaction.countOfResponseHeaderBytesReceived == 210)
    #expect(transaction.countOfResponseBodyBytesReceived == 5_000)
    #expect(transaction.countOfResponseBodyBytesAfterDecoding == 20_000)
    #expect(transaction.localAddress == "10.0.0.2")
    #expect(transaction.localPort == 50_000)
    #expect(transaction.remoteAddress == "10.0.0.1")
    #expect(transaction.remotePort == 443)
    #expect(transaction.negotiatedTLSProtocolVersion == .TLSv13)
    #expect(transaction.negotiatedTLSCipherSuite == .AES_256_GCM_SHA384)
    #expect(transaction.domainResolutionProtocol == .unknown)
    #expect(!transaction.isCellular && !transaction.isExpensive && !transaction.isConstrained)
    #expect(!transaction.isMultipath)
  }

  @Test("An unknown value is nil") func unknownValues() throws {
    let hop = Exchange.Hop(url: "http://h.example/", metrics: TransferMetrics())
    let transaction = try #require(try Self.metrics([hop]).transactionMetrics.first)
    #expect(transaction.localAddress == nil)
    #expect(transaction.localPort == nil)
    #expect(transaction.remoteAddress == nil)
    #expect(transaction.remotePort == nil)
    #expect(transaction.negotiatedTLSProtocolVersion == nil)
    #expect(transaction.negotiatedTLSCipherSuite == nil)
    #expect(transaction.response == nil)
    #expect(transaction.responseEndDate == nil)
    #expect(try Self.metrics([hop]).taskInterval.duration == 0)
  }

  @Test("The interval includes all hops and only redirects are counted") func interval() throws {
    var last = Self.reused()
    last.start = 1_002
    let metrics = try Self.metrics([
      Self.hop(Self.fresh(), status: 302), Self.hop(Self.reused(), status: 401), Self.hop(last, status: 301),
    ])
    #expect(metrics.transactionMetrics.count == 3)
    #expect(metrics.redirectCount == 1)
    #expect(metrics.taskInterval.start == Date(timeIntervalSince1970: 1_000))
    #expect(Self.milliseconds(metrics.taskInterval.end) == 2_002)
  }

  @Test("The description has a line for each phase") func description() throws {
    var plain = Exchange.Hop(url: "http://h.example/c", metrics: TransferMetrics(), fetchType: .localCache)
    plain.head = ResponseHead(status: 200)
    let metrics = try Self.metrics([
      Self.hop(Self.fresh(), status: 302, path: "/b"), Self.hop(Self.reused(), status: nil), plain,
    ])
    #expect(
      metrics.description == """
        Task: 1002.0 ms, 1 redirect
        POST https://h.example/b: 302, h2, 10.0.0.1 port 443
          look-up: 1.0 ms
          connection: 2.0 ms
          TLS handshake: 12.0 ms, TLS 1.3 with TLS_AES_256_GCM_SHA384
          request: 0.1 ms, 120 + 7 bytes
          waiting: 7.8 ms
          response: 2.5 ms, 210 + 5000 bytes, 20000 decoded
        POST https://h.example/a: no response, h2, 10.0.0.1 port 443, connection used again
          request: 0.0 ms, 120 + 7 bytes
          waiting: 1.0 ms
          response: 1.0 ms, 210 + 5000 bytes
        GET http://h.example/c: 200, from a cache
        """)
  }

  @Test("A request that a response has stopped was sent until then") func earlyResponse() throws {
    let metrics = try Self.metrics([Self.hop(Self.early(), status: 413)])
    #expect(
      metrics.description == """
        Task: 26.0 ms, 0 redirects
        POST https://h.example/a: 413, h2, 10.0.0.1 port 443, connection used again
          request: 20.0 ms, 120 + 7 bytes
          response: 1.0 ms, 210 + 5000 bytes
        """)
    #expect(metrics.transactionMetrics.first?.requestEndDate == nil, "the last byte was not sent")
  }

  @Test("TLS versions have the names of OpenSSL") func tlsVersions() {
    let names = ["TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3", "SSLv3"]
    let versions = names.map { name in
      let transfer = TransferMetrics(connection: ConnectionDetails(tlsVersion: name))
      let hop = Exchange.Hop(url: "https://h.example/", metrics: transfer)
      return Exchange(url: nil, head: nil, hops: [hop]).metrics?.transactionMetrics[0]
        .negotiatedTLSProtocolVersion
    }
    #expect(versions == [.TLSv10, .TLSv11, .TLSv12, .TLSv13, nil])
    #expect("\(TLSProtocolVersion.TLSv12)" == "TLS 1.2")
    #expect("\(TLSProtocolVersion(rawValue: 0x0305))" == "TLS 0x305")
  }

  @Test("Versions and cipher suites have the names and numbers of Apple's systems")
  func namesOfTLS() {
    let versions: [tls_protocol_version_t] = [.DTLSv10, .DTLSv12]
    #expect(versions.map(\.rawValue) == [0xFEFF, 0xFEFD])
    #expect(versions.map(\.description) == ["DTLS 1.0", "DTLS 1.2"])
    let suites: [tls_ciphersuite_t] = [
      .CHACHA20_POLY1305_SHA256, .ECDHE_RSA_WITH_AES_128_GCM_SHA256, .RSA_WITH_3DES_EDE_CBC_SHA,
    ]
    #expect(suites.map(\.rawValue) == [0x1303, 0xC02F, 0x000A])
    #expect(suites[1].description == "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256")
    #expect(tls_ciphersuite_t(rawValue: 0x009F).description == "TLS cipher suite 0x9f")
  }

  @Test("The description contains no password of a URL")
  func passwordIsNotShown() throws {
    let hop = Exchange.Hop(url: "http://ann:s3cret@h.example/", metrics: TransferMetrics())
    let metrics = try Self.metrics([hop])
    #expect(!metrics.description.contains("s3cret"))
    #expect(metrics.description.contains("redacted@h.example"))
  }

  @Test("The names of Apple's systems are our types") func appleNames() {
    #expect(URLSessionTaskMetrics.self == TaskMetrics.self)
    #expect(URLSessionTaskTransactionMetrics.self == TransactionMetrics.self)
    let type: URLSessionTaskMetrics.ResourceFetchType = .networkLoad
    #expect(type.rawValue == 1)
  }
}
