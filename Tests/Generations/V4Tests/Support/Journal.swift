import Alamofire
import enum Alamofire.BackgroundFolder
import Foundation
import FoundationNetworking

/// Whether there is the folder of a background session with a journal.
func hasJournal(_ identifier: String) -> Bool {
  FileManager.default.fileExists(atPath: BackgroundFolder.path(of: identifier))
}

/// Makes a configuration of the current generation, whose sessions write a journal.
func configurationWithJournal(_ identifier: String) -> URLSessionConfiguration {
  URLSessionConfiguration.af.background(withIdentifier: identifier)
}
