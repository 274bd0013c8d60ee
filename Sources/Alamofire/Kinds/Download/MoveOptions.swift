import Foundation
import FoundationNetworking

/// The options of a move, as `DownloadRequest.Options` has them.
struct MoveOptions: OptionSet, Sendable {
  static let createIntermediateDirectories = MoveOptions(rawValue: 1 << 0)
  static let removePreviousFile = MoveOptions(rawValue: 1 << 1)

  let rawValue: Int
}

/// A closure that returns the location of a complete file, as `DownloadRequest.Destination` does.
typealias FileDestination = @Sendable (URL, HTTPURLResponse) -> (URL, MoveOptions)
