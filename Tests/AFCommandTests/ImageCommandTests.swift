import AFCommand
import Alamofire
import AlamofireImage
import Foundation
import HTTPTestServer
import Scenarios
import Testing

/// `af image info` and `af image resize`.
@Suite(.timeLimit(.minutes(5))) struct ImageCommandTests {
  private let server: HTTPTestServer

  init() throws {
    server = try HTTPTestServer()
  }

  /// Makes a picture whose left half is red and whose right half is blue.
  private func picture(_ width: Int = 60, _ height: Int = 40) throws -> Image {
    let row = (0..<width).flatMap { $0 < width / 2 ? [200, 0, 0] : [0, 0, 100] as [UInt8] }
    return try Image(
      pixels: Data((0..<height).flatMap { _ in row }), width: width, height: height, format: .rgb)
  }

  private func enqueue(_ file: Data, type: String = "image/png") {
    server.enqueue(Reply(headers: [.contentType(type)], body: .bytes(Array(file))))
  }

  @Test("Facts are written, a line for each")
  func info() async throws {
    let file = try picture().encode(as: .png)
    // The bytes say what it is, not the type.
    enqueue(file, type: "application/octet-stream")
    let run = await Terminal.pipe.run("image", "info", server.url("/a"), "X-A:1", "q==2")
    #expect(run.status == .success, "\(run.error)")
    #expect(
      run.output == """
        format: png
        width: 60
        height: 40
        bytes: \(file.count)
        alpha: no
        average: #640032

        """)
    let request = try await server.takeRequest()
    #expect(request.method == "GET" && request.target == "/a?q=2" && request.header("X-A") == "1")
  }

  @Test("An animation has frames, a duration and a number of loops")
  func animation() async throws {
    let turned = Data(try picture().pixels(as: .rgb).reversed())
    let frames = [try picture(), try Image(pixels: turned, width: 60, height: 40, format: .rgb)]
    let image = try Image(
      frames: frames, durations: [.milliseconds(200), .milliseconds(1_300)], loopCount: 0)
    enqueue(try image.encode(as: .webp, isLossless: true), type: "image/webp")
    let run = await Terminal.pipe.run("image", "info", server.url("/a"))
    #expect(
      run.output.hasSuffix("frames: 2\nduration: 1.50 s\nloops: endless\n"), "\(run.output)\(run.error)")
  }

  @Test(
    "A file is written in another size and format",
    arguments: [
      ("small.webp", "30", 30, 20), ("SMALL.JPG", "30", 30, 20), ("a.png", "20x20", 20, 20),
      ("large.tif", "500", 60, 40),
    ])
  func resize(name: String, size: String, width: Int, height: Int) async throws {
    let folder = try Folder()
    enqueue(try picture().encode(as: .png))
    let path = folder.path(name)
    let run = await Terminal.pipe.run("image", "resize", "--size", size, "-o", path, server.url("/a"))
    #expect(run.status == .success && run.output == "" && run.error == "", "\(run.error)")
    let image = try Image(contentsOf: URL(fileURLWithPath: path))
    #expect((image.pixelWidth, image.pixelHeight) == (width, height))
    let expected: [String: ImageFormat] = ["webp": .webp, "JPG": .jpeg, "png": .png, "tif": .tiff]
    #expect(image.format == expected[String(name.split(separator: ".")[1])])
  }

  @Test("A file is written where a link leads, and the link stays", arguments: ["target", "missing"])
  func link(target: String) async throws {
    let folder = try Folder()
    _ = try folder.file("target", "old")
    let link = folder.path("l.png")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: target)
    enqueue(try picture().encode(as: .png))
    let run = await Terminal.pipe.run("image", "resize", "--size", "9", "-o", link, server.url("/a"))
    #expect(run.status == .success, "\(run.error)")
    #expect(kind(link) == S_IFLNK && kind(folder.path(target)) == S_IFREG)
    #expect(try Image(contentsOf: URL(fileURLWithPath: folder.path(target))).pixelWidth == 9)
  }

  @Test("A pipe is written to, and not replaced") func pipe() async throws {
    let folder = try Folder()
    let path = folder.path("p.png")
    try #require(mkfifo(path, 0o600) == 0)
    // A reader, so that opening the pipe does not wait.
    let reader = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
    defer { close(reader) }
    enqueue(try picture().encode(as: .png))
    let run = await Terminal.pipe.run("image", "resize", "--size", "9", "-o", path, server.url("/a"))
    #expect(run.status == .success, "\(run.error)")
    #expect(kind(path) == S_IFIFO)
    var room = [UInt8](repeating: 0, count: 1 << 16)
    let count = read(reader, &room, room.count)
    try #require(count > 0)
    #expect(try Image(data: Data(room[..<count])).pixelWidth == 9)
  }

  @Test("A file that cannot be written is named") func unwritable() async throws {
    enqueue(try picture().encode(as: .png))
    let run = await Terminal.pipe.run(
      "image", "resize", "--size", "9", "-o", "/proc/none/a.png", server.url("/a"))
    #expect(run.status == .failure)
    #expect(run.error == "af: '/proc/none/a.png' cannot be written: No such file or directory.\n")
  }

  private func kind(_ path: String) -> mode_t? {
    var information = stat()
    return lstat(path, &information) == 0 ? information.st_mode & S_IFMT : nil
  }

  @Test("A body that is sent with the request, and a method, come before the image")
  func body() async throws {
    enqueue(try picture().encode(as: .png))
    let run = await Terminal.pipe.run("image", "info", "PUT", server.url("/chart"), "width:=60")
    #expect(run.status == .success && run.output.hasPrefix("format: png\n"), "\(run.error)")
    let request = try await server.takeRequest()
    #expect(request.method == "PUT" && request.bodyText == #"{"width": 60}"#)
  }

  @Test("Errors of the server have their exit status, and leave the file alone")
  func refused() async throws {
    let folder = try Folder()
    let path = try folder.file("old.png", "old")
    let run = await Terminal.pipe.run(
      "image", "resize", "--size", "9", "-o", path, server.url("/status/404"))
    #expect(run.status == .clientError)
    #expect(run.error.hasPrefix("af: ") && run.error.contains("404"), "\(run.error)")
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "old")
    let unchecked = await Terminal.pipe.run(
      "--no-check-status", "image", "info", server.url("/status/500"))
    #expect(unchecked.status == .failure)
  }

  @Test("A file that is not an image, or a damaged one, is an error")
  func damaged() async throws {
    enqueue(Data("<html>".utf8), type: "image/png")
    let text = await Terminal.pipe.run("image", "info", server.url("/a"))
    #expect(text.status == .failure)
    #expect(text.error == "af: The data is not an image of a known format.\n")
    let file = try picture(300, 300).encode(as: .jpeg)
    enqueue(file.prefix(file.count / 2))
    let half = await Terminal.pipe.run("image", "info", server.url("/a"))
    #expect(half.status == .failure && half.error.hasPrefix("af: The image is damaged"), "\(half.error)")
    let folder = try Folder()
    let path = folder.path("a.png")
    enqueue(file.prefix(file.count / 2))
    let resized = await Terminal.pipe.run("image", "resize", "--size", "9", "-o", path, server.url("/a"))
    #expect(resized.status == .failure)
    #expect(!FileManager.default.fileExists(atPath: path))
  }

  @Test("A body without an end is given up")
  func endless() async throws {
    let limit = ImageLimits.default.bytes
    server.enqueue(
      Reply(
        headers: [.contentType("image/png")],
        body: .parts(Array(repeating: .bytes(Array(repeating: 7, count: 1 << 20)), count: limit >> 20 + 2))))
    let run = await Terminal.pipe.run("image", "info", server.url("/a"))
    #expect(run.status == .failure)
    #expect(run.error == "af: The body of the response is larger than \(limit) bytes.\n")
  }

  @Test("A server that cannot be reached is an error")
  func unreachable() async throws {
    let run = await Terminal.pipe.run("image", "info", "http://127.0.0.1:1/a.png")
    #expect(run.status == .failure && run.error.hasPrefix("af: "), "\(run.error)")
  }

  @Test("On a terminal it says where the image is saved")
  func saved() async throws {
    let folder = try Folder()
    enqueue(try picture().encode(as: .png))
    let path = folder.path("small.png")
    let run = await Terminal(isErrorTerminal: true).run(
      "image", "resize", "--size", "30", "-o", path, server.url("/a"))
    #expect(run.error.contains("Saved in \(path)"), "\(run.error)")
  }

  @Test(
    "Wrong arguments are refused before anything is sent",
    arguments: [
      (["image", "show", "example.com"], "info or resize"),
      (["image", "info", "example.com", "-o", "a.png"], "leave out --output"),
      (["image", "info", "example.com", "--size", "9"], "leave out --output"),
      (["image", "info", "example.com", "-v"], "leave out -h"),
      (["image", "info", "example.com", "--timing"], "leave out -h"),
      (["image", "info", "example.com", "--retry", "2"], "leave out -h"),
      (["image", "resize", "example.com", "-o", "a.png"], "needs --size"),
      (["image", "resize", "example.com", "--size", "9"], "needs a file"),
      (["image", "resize", "example.com", "--size", "9", "-d"], "needs a file"),
      (["image", "resize", "example.com", "--size", "9", "-o", "a.bmp"], "known ending"),
      (["image", "resize", "example.com", "--size", "9", "-o", "a.png/b"], "known ending"),
      (["image", "resize", "example.com", "--size", "0", "-o", "a.png"], "--size needs"),
      (["image", "resize", "example.com", "--size", "4x", "-o", "a.png"], "--size needs"),
      (["image", "resize", "example.com", "--size", "4x4x4", "-o", "a.png"], "--size needs"),
      (["example.com", "--size", "9"], "--size is for"),
    ])
  func wrongArguments(arguments: [String], reason: String) async {
    let run = await Terminal.pipe.run(arguments)
    #expect(run.status == .usage)
    #expect(run.error.contains(reason), "\(run.error)")
  }

  @Test("A host that is called image can be asked")
  func host() throws {
    let outcome = try ArgumentParser.parse(["image"])
    guard case .send(let invocation) = outcome else { return #expect(Bool(false), "\(outcome)") }
    #expect(invocation.action == .request && invocation.url == "https://image")
  }

  @Test("The curl command and the offline request are those of a request")
  func shown() async {
    let run = await Terminal.pipe.run("--curl", "image", "info", "http://example.com/a.png")
    #expect(run.status == .success && run.output.hasPrefix("curl "), "\(run.error)")
  }
}
