import AlamofireImage
import Foundation

// Makes thumbnails of 400 pixels: `thumbnails FOLDER FILE ...`. Scripts/thumbnails measures it.

let arguments = CommandLine.arguments.dropFirst()
guard let folder = arguments.first, arguments.count > 1 else {
  FileHandle.standardError.write(Data("usage: thumbnails FOLDER FILE ...\n".utf8))
  exit(2)
}
let files = Array(arguments.dropFirst())
let sizes = ImageVariants(.init("thumbnail", longestSide: 400))

/// Makes one thumbnail.
@Sendable func makeThumbnail(of file: String, number: Int) async throws {
  let image = try Image(contentsOf: URL(fileURLWithPath: file))
  let thumbnail = try await sizes.files(of: image, as: .jpeg)["thumbnail"]
  try thumbnail?.write(to: URL(fileURLWithPath: "\(folder)/\(number).jpeg"))
}

try await withThrowingTaskGroup(of: Void.self) { group in
  let width = ProcessInfo.processInfo.activeProcessorCount
  for (number, file) in files.enumerated() {
    if number >= width { try await group.next() }
    group.addTask { try await makeThumbnail(of: file, number: number) }
  }
  try await group.waitForAll()
}
