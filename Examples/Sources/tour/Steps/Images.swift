import Alamofire
import AlamofireImage
import HTTPTestServer

let images = Step("An image, its thumbnail, and a placeholder") { stage in
  let evening = try Image(pixels: evening(width: 1_200, height: 800), width: 1_200, height: 800, format: .rgb)
  var reply = Reply.data(Array(try evening.encode(as: .jpeg, quality: 0.9)))
  reply.headers = [HTTPHeader(name: "Content-Type", value: "image/jpeg")]
  stage.server.enqueue(reply)

  let downloader = ImageDownloader()
  let request = try URLRequest(url: stage.server.url("/evening.jpeg"), method: .get)
  let filter = AspectScaledToFillSizeWithRoundedCornersFilter(
    size: CGSize(width: 240, height: 160), radius: 16)
  let thumbnail = try await downloader.image(for: request, filter: filter)
  _ = try await downloader.image(for: request, filter: filter)
  stage.show(
    "1200 × 800 pixels became", "\(thumbnail.pixelWidth) × \(thumbnail.pixelHeight), with round corners")
  stage.show("asked twice, requested", "\(stage.server.requestCount(of: "/evening.jpeg")) time")
  stage.show("average colour", try evening.averageColor().hex)
  stage.show(
    "a placeholder for a page", "\(try evening.placeholder().dataURL(as: .jpeg).utf8.count) characters")
  if stage.isTerminal, isKitty { stage.drawPicture(try thumbnail.encode(as: .png)) }
}

/// Draws a sky after sunset, with the moon.
private func evening(width: Int, height: Int) -> Data {
  var samples = Data(capacity: width * height * 3)
  for y in 0..<height {
    for x in 0..<width {
      let (dx, dy) = (x - width * 3 / 4, y - height / 4)
      let isMoon = dx * dx + dy * dy < height * height / 100
      let low = y * 255 / height
      samples.append(
        contentsOf: isMoon ? [250, 245, 220] : [UInt8(40 + low * 4 / 5), UInt8(30 + low / 3), 90])
    }
  }
  return samples
}

/// Whether the terminal shows pictures by the protocol of kitty.
private var isKitty: Bool {
  let environment = ProcessInfo.processInfo.environment
  return environment["KITTY_WINDOW_ID"] != nil || environment["TERM"]?.contains("kitty") == true
    || ["WezTerm", "ghostty"].contains(environment["TERM_PROGRAM"] ?? "")
}

extension HTTPTestServer {
  /// Counts the requests for a path.
  fileprivate func requestCount(of path: String) -> Int {
    recordedRequests.filter { $0.path == path }.count
  }
}

extension Stage {
  /// Sends a PNG to the terminal, in pieces of 4,096 characters.
  fileprivate func drawPicture(_ file: Data) {
    var rest = Substring(file.base64EncodedString())
    var keys = "a=T,f=100,"
    while !rest.isEmpty {
      let piece = rest.prefix(4_096)
      rest = rest.dropFirst(4_096)
      draw("\u{1b}_G\(keys)m=\(rest.isEmpty ? 0 : 1);\(piece)\u{1b}\\")
      keys = ""
    }
    write("")
  }
}
