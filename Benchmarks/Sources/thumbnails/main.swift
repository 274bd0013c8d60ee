import AlamofireImage
import Foundation

// Makes thumbnails of 400 pixels, some at a time: `thumbnails COUNT FOLDER FILE ...`. Scripts/thumbnails measures it.

let arguments = Array(CommandLine.arguments.dropFirst())
guard arguments.count > 2, let width = Int(arguments[0]), width > 0 else {
  FileHandle.standardError.write(Data("usage: thumbnails COUNT FOLDER FILE ...\n".utf8))
  exit(2)
}
let folder = arguments[1]
let files = arguments.dropFirst(2)
let sizes = ImageVariants(.init("thumbnail", longestSide: 400))

/// Makes one thumbnail.
@Sendable func makeThumbnail(of file: String, number: Int) async throws {
  let thumbnail = try await sizes.files(ofFile: URL(fileURLWithPath: file), as: .jpeg)["thumbnail"]
  try thumbnail?.write(to: URL(fileURLWithPath: "\(folder)/\(number).jpeg"))
}

try await withThrowingTaskGroup(of: Void.self) { group in
  for (number, file) in files.enumerated() {
    if number >= width { try await group.next() }
    group.addTask { try await makeThumbnail(of: file, number: number) }
  }
  try await group.waitForAll()
}
