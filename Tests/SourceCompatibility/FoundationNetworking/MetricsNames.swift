import Alamofire

// A module whose files import FoundationNetworking beside Alamofire sees two types of each of these names:
// Foundation's, which nobody can fill on Linux, and the ones that requests give. Two lines, once in the
// module, say which are meant.

typealias URLSessionTaskMetrics = Alamofire.URLSessionTaskMetrics
typealias URLSessionTaskTransactionMetrics = Alamofire.URLSessionTaskTransactionMetrics
