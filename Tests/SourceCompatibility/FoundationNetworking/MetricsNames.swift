import Alamofire

// A module whose files import FoundationNetworking beside Alamofire sees two types of each of these names:
// Foundation's, which cannot be filled on Linux, and the ones of requests. Two lines, once in the module, select the
// latter.

typealias URLSessionTaskMetrics = Alamofire.URLSessionTaskMetrics
typealias URLSessionTaskTransactionMetrics = Alamofire.URLSessionTaskTransactionMetrics
