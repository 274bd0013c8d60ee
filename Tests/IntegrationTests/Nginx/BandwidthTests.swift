import Alamofire
import Foundation
import Testing

/// Limits of bandwidth over each version of HTTP.
@Suite(.needsNginx, .timeLimit(.minutes(5))) struct BandwidthTests {
  private static let content = Data(
    (0..<300_000).map { UInt8(truncatingIfNeeded: ($0 &* 0x9E37_79B1) >> 13) })

  /// Returns the response, and the time until its end.
  private func measure(
    _ request: DataRequest
  ) async -> (AFDataResponse<Data>, Duration) {
    let started = ContinuousClock.now
    let response = await request.validate().serializingData(emptyResponseCodes: [201, 204]).response
    return (response, ContinuousClock.now - started)
  }

  @Test("Responses keep to the bandwidth", arguments: NginxServer.Entrance.allCases)
  func download(entrance: NginxServer.Entrance) async throws {
    let server = try await NginxServer.shared
    let name = "bandwidth-\(entrance)"
    try server.serve(Self.content, as: name)
    let session = server.makeSession { $0.requestBandwidth.download = 400_000 }
    let (response, time) = await measure(session.request(server.url(entrance, "/files/\(name)")))
    #expect(response.value == Self.content, "\(response.failure)")
    #expect(time >= .milliseconds(500))
  }

  @Test("Uploads keep to the bandwidth", arguments: NginxServer.Entrance.allCases)
  func upload(entrance: NginxServer.Entrance) async throws {
    let server = try await NginxServer.shared
    let session = server.makeSession { $0.sessionBandwidth.upload = 400_000 }
    let url = server.url(entrance, "/stored/bandwidth-\(entrance)")
    let (response, time) = await measure(session.upload(Self.content, to: url, method: .put))
    #expect(response.error == nil, "\(response.failure)")
    #expect(time >= .milliseconds(500))
    let stored = await session.request(server.url(entrance, "/stored/bandwidth-\(entrance)"))
      .serializingData()
      .response
    #expect(stored.value == Self.content)
  }

  @Test(
    "The bytes on the wire count, not those that they decode to", arguments: NginxServer.Entrance.allCases)
  func decoded(entrance: NginxServer.Entrance) async throws {
    let server = try await NginxServer(
      NginxConfiguration(locations: "location /packed/ { alias files/; gzip on; gzip_types *; }"))
    let content = Data(count: 20_000_000)
    try server.serve(content, as: "zeros")
    let session = server.makeSession { $0.sessionBandwidth.download = 400_000 }
    let (response, time) = await measure(session.request(server.url(entrance, "/packed/zeros")))
    #expect(response.value == content, "\(response.failure)")
    #expect(response.response?.value(forHTTPHeaderField: "Content-Encoding") == "gzip")
    // The decoded bytes would need 50 seconds.
    #expect(time < .seconds(25))
  }
}
