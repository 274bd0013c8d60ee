import enum Alamofire.BackgroundFolder
import Foundation

/// Whether there is the folder of a background session with a journal.
func hasJournal(_ identifier: String) -> Bool {
  FileManager.default.fileExists(atPath: BackgroundFolder.path(of: identifier))
}
