import Alamofire

// A module whose files import FoundationNetworking beside Alamofire sees two types of each of these names:
// Foundation's, which cannot be filled on Linux, and those of the library. Two lines, once in the module, choose
// them.

typealias URLSessionTaskMetrics = Alamofire.URLSessionTaskMetrics
typealias URLSessionTaskTransactionMetrics = Alamofire.URLSessionTaskTransactionMetrics
