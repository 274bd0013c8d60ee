import Alamofire
import AlamofireImage
import Foundation
import FoundationNetworking
import HTTPTestServer

/// A server of images: `/image/{w}x{h}` is a PNG of that size, also below other folders.
struct ImageServer {
  let server: HTTPTestServer

  init() throws {
    server = try HTTPTestServer(
      routes: Routes.none.adding("/image/{size}") { _, parameters in
        let sides = parameters[0].split(separator: "x").compactMap { Int($0) }
        guard sides.count == 2, let file = try? Drawing(gradientOf: sides[0], sides[1]).file(.png) else {
          return .status(404)
        }
        return .image(file)
      })
  }

  func request(_ path: String) throws -> URLRequest {
    try URLRequest(url: server.url(path).asURL())
  }
}

extension Reply {
  static func image(_ file: Data, type: String = "image/png") -> Reply {
    var reply = Reply.data(Array(file))
    reply.headers = [HTTPHeader(name: "Content-Type", value: type)]
    return reply
  }
}

extension URLSessionConfiguration {
  /// A configuration without a cache and with its own cookies.
  static var isolated: URLSessionConfiguration {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = nil
    return configuration
  }
}

extension ImageDownloader {
  /// Makes a downloader without a cache of responses.
  static func isolated(
    _ prioritization: DownloadPrioritization = .fifo, active: Int = 4,
    cache: (any ImageRequestCache)? = AutoPurgingImageCache()
  ) -> ImageDownloader {
    ImageDownloader(
      configuration: .isolated, downloadPrioritization: prioritization, maximumActiveDownloads: active,
      imageCache: cache)
  }
}
