//===- Import.cpp - models whose fields are changed, as far as phase prim -----------------------------------------===//
//
// ONNX: any field of any message by protobuf's reflection, numbers, names, types, lists. torch.export: any value of the
// program's JSON, and the archive around it. TorchScript: words and lines of its code, and its pickles. Other JSON that
// the compiler reads: operators of the user's own, the tuning database. A model is taken, or refused with a sentence
// that no defect of tc is behind; what is taken passes the prim pipeline and its verifiers.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Loop.h"
#include "Pickle.h"
#include "TorchCode.h"
#include "Zip.h"

#include "Frontend/TorchScript/Syntax.h"

#include "tc/Conversion/GraphToPrim/GraphTypes.h"
#include "tc/Dialect/TC/IR/ErrorKind.h"
#include "tc/Driver/Phases.h"
#include "tc/Driver/Register.h"
#include "tc/Format/Json.h"
#include "tc/Frontend/ExportedProgram.h"
#include "tc/Frontend/ONNX.h"
#include "tc/Frontend/TorchScript.h"
#include "tc/Measure/Database.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "onnx/onnx_pb.h"
#include "llvm/ADT/StringExtras.h"

#include <map>
#include <memory>

using namespace tc::fuzz;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

namespace {

//===--- what is done with a model --------------------------------------------------------------------------------===//

std::unique_ptr<mlir::MLIRContext> current;
mlir::MLIRContext &context() { return *current; }

/// A new context for every few hundred models, which would fill one with their types.
mlir::MLIRContext *beginModel() {
  static int uses = 0;
  if (uses++ % 256 == 0) {
    static mlir::DialectRegistry registry;
    if (!current) {
      tc::driver::registerAllDialects(registry);
      tc::driver::registerAllPasses();
    }
    current = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
    current->printOpOnDiagnostic(false);
  }
  return current.get();
}

Answer lower(llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> module, std::string &why) {
  if (!module) {
    const std::string text = llvm::toString(module.takeError());
    if (text.find(": error: ") == std::string::npos)
      why = "no sentence: " + text;
    return why.empty() ? Answer::Refused : Answer::Wrong;
  }
  std::string first;
  bool isDefect = false;
  mlir::ScopedDiagnosticHandler handler(&context(), [&](mlir::Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error && first.empty()) {
      first = diagnostic.str();
      isDefect = tc::base::getErrorKind(diagnostic) == tc::base::ErrorKind::Internal;
    }
    return mlir::success();
  });
  tc::GraphToPrimReport report;
  tc::driver::PhaseOptions options;
  options.report = &report;
  mlir::PassManager manager(&context());
  tc::driver::addPhaseVerifier(tc::driver::Phase::Import, manager);
  tc::driver::buildPhasePipeline(tc::driver::Phase::Prim, manager, options);
  tc::driver::addPhaseVerifier(tc::driver::Phase::Prim, manager);
  if (mlir::succeeded(manager.run(**module)))
    return Answer::Taken;
  // What the conversion refuses is in its report.
  if (report.invalidCount == 0 && report.unsupported.empty() && (isDefect || first.empty())) {
    why = "a defect: " + first;
    return Answer::Wrong;
  }
  return Answer::Refused;
}

//===--- ONNX by field --------------------------------------------------------------------------------------------===//

/// All messages of a model, the model itself first.
void collect(Message &message, std::vector<Message *> &all) {
  all.push_back(&message);
  std::vector<const FieldDescriptor *> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor *field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE)
      continue;
    const Reflection *reflection = message.GetReflection();
    if (!field->is_repeated())
      collect(*reflection->MutableMessage(&message, field), all);
    else
      for (int i = 0; i < reflection->FieldSize(message, field); ++i)
        collect(*reflection->MutableRepeatedMessage(&message, field, i), all);
  }
}

std::string oddString(const std::vector<std::string> &names, Random &random) {
  static const std::string odd[] = {"",
                                    "x",
                                    "ai.onnx",
                                    "com.microsoft",
                                    "ai.onnx.ml",
                                    "SAME_UPPER",
                                    "constant",
                                    "linear",
                                    "tc.random",
                                    "a/b\\c\"",
                                    "\xff\xfe",
                                    "N",
                                    "-1",
                                    "bilinear",
                                    "reflect",
                                    "ij,jk->ik",
                                    std::string(5000, 'n'),
                                    std::string("a\0b", 3)};
  const uint64_t count = sizeof odd / sizeof *odd;
  return !names.empty() && pick(random, 3) ? names[pick(random, names.size())] : odd[pick(random, count)];
}

double oddFloat(Random &random) {
  static const double numbers[] = {0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 1e38, -1e38, 1e300, 2147483648.0, 9.3e18, 0.1};
  switch (pick(random, 8)) {
  case 0:
    return std::numeric_limits<double>::quiet_NaN();
  case 1:
    return std::numeric_limits<double>::infinity();
  default:
    return numbers[pick(random, sizeof numbers / sizeof *numbers)];
  }
}

/// Another value for a field: of element `index` where it is repeated, or a new element (-1).
void setField(Message &message, const FieldDescriptor *field, int index, const std::vector<std::string> &names,
              Random &random) {
  const Reflection *r = message.GetReflection();
  const bool isRepeated = field->is_repeated(), isNew = isRepeated && index < 0;
#define SET(Kind, value)                                                                                               \
  (isNew        ? r->Add##Kind(&message, field, value)                                                                 \
   : isRepeated ? r->SetRepeated##Kind(&message, field, index, value)                                                  \
                : r->Set##Kind(&message, field, value))
  switch (field->cpp_type()) {
  case FieldDescriptor::CPPTYPE_INT32:
    // Element types are numbers of an enumeration.
    SET(Int32, pick(random, 2) ? int32_t(pick(random, 28)) : int32_t(oddNumber(random)));
    break;
  case FieldDescriptor::CPPTYPE_INT64:
    SET(Int64, pick(random, 2) ? int64_t(pick(random, 9)) - 2 : oddNumber(random));
    break;
  case FieldDescriptor::CPPTYPE_UINT32:
    SET(UInt32, uint32_t(oddNumber(random)));
    break;
  case FieldDescriptor::CPPTYPE_UINT64:
    SET(UInt64, uint64_t(oddNumber(random)));
    break;
  case FieldDescriptor::CPPTYPE_FLOAT:
    SET(Float, float(oddFloat(random)));
    break;
  case FieldDescriptor::CPPTYPE_DOUBLE:
    SET(Double, oddFloat(random));
    break;
  case FieldDescriptor::CPPTYPE_BOOL:
    SET(Bool, pick(random, 2) != 0);
    break;
  case FieldDescriptor::CPPTYPE_STRING: {
    std::string text = oddString(names, random);
    if (field->type() == FieldDescriptor::TYPE_BYTES && pick(random, 2)) {
      text = isRepeated ? (isNew ? "" : r->GetRepeatedString(message, field, index)) : r->GetString(message, field);
      mutateBytes(text, random);
    }
    SET(String, text);
    break;
  }
  case FieldDescriptor::CPPTYPE_ENUM: {
    const auto *type = field->enum_type();
    SET(EnumValue, type->value(int(pick(random, uint64_t(type->value_count()))))->number());
    break;
  }
  default:
    break;
  }
#undef SET
}

void mutateMessage(Message &message, const std::vector<Message *> &all, const std::vector<std::string> &names,
                   Random &random) {
  const Reflection *r = message.GetReflection();
  std::vector<const FieldDescriptor *> fields;
  r->ListFields(message, &fields);
  // Mostly what is there; sometimes what is not.
  const auto *type = message.GetDescriptor();
  const FieldDescriptor *field = fields.empty() || pick(random, 6) == 0
                                     ? type->field(int(pick(random, uint64_t(type->field_count()))))
                                     : fields[pick(random, fields.size())];
  const bool isMessage = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  // A copy of a message of its type, made before anything is changed: members of a oneof replace each other.
  std::unique_ptr<Message> other;
  if (isMessage) {
    std::vector<const Message *> same;
    for (const Message *m : all)
      if (m->GetDescriptor() == field->message_type() && m->ByteSizeLong() < 20000)
        same.push_back(m);
    if (!same.empty()) {
      const Message *from = same[pick(random, same.size())];
      other.reset(from->New());
      other->CopyFrom(*from);
    }
  }
  auto copy = [&](Message *to) {
    if (other)
      to->CopyFrom(*other);
  };
  if (!field->is_repeated()) {
    if (pick(random, 8) == 0)
      r->ClearField(&message, field);
    else if (isMessage)
      copy(r->MutableMessage(&message, field));
    else
      setField(message, field, -1, names, random);
    return;
  }
  const int size = r->FieldSize(message, field), at = size ? int(pick(random, uint64_t(size))) : -1;
  switch (at < 0 ? 1 : pick(random, 6)) {
  case 0: // without one
    r->SwapElements(&message, field, at, size - 1);
    r->RemoveLast(&message, field);
    break;
  case 1: // with one more
    isMessage ? copy(r->AddMessage(&message, field)) : setField(message, field, -1, names, random);
    break;
  case 2:
    r->SwapElements(&message, field, at, int(pick(random, uint64_t(size))));
    break;
  default:
    isMessage ? copy(r->MutableRepeatedMessage(&message, field, at)) : setField(message, field, at, names, random);
    break;
  }
}

void mutateOnnx(std::string &bytes, const std::vector<std::string> &corpus, Random &random) {
  onnx::ModelProto model, donor;
  if (!model.ParseFromString(bytes) || pick(random, 32) == 0)
    return mutateBytes(bytes, random);
  std::vector<Message *> all, donated;
  collect(model, all);
  if (donor.ParseFromString(corpus[pick(random, corpus.size())]))
    collect(donor, donated);
  std::vector<std::string> names;
  for (const onnx::ValueInfoProto &value : model.graph().input())
    names.push_back(value.name());
  for (const onnx::NodeProto &node : model.graph().node()) {
    names.push_back(node.op_type());
    names.insert(names.end(), node.output().begin(), node.output().end());
  }
  for (const onnx::NodeProto &node : donor.graph().node())
    names.push_back(node.op_type());
  for (uint64_t n = 1 + pick(random, 1 + pick(random, 4)); n--;) {
    std::vector<Message *> sources;
    all.clear();
    collect(model, all);
    sources = all;
    sources.insert(sources.end(), donated.begin(), donated.end());
    mutateMessage(*all[pick(random, all.size())], sources, names, random);
  }
  model.SerializeToString(&bytes);
}

//===--- JSON by value, and .pt2 ----------------------------------------------------------------------------------===//

using Json = nlohmann::json;

void collect(Json &json, std::vector<Json *> &all) {
  all.push_back(&json);
  for (Json &inner : json)
    if (json.is_structured())
      collect(inner, all);
}

void mutateJson(Json &json, Random &random) {
  for (uint64_t n = 1 + pick(random, 4); n--;) {
    std::vector<Json *> all;
    collect(json, all);
    Json &value = *all[pick(random, all.size())];
    switch (pick(random, 8)) {
    case 0:
      value = oddNumber(random);
      break;
    case 1:
      value = oddFloat(random);
      break;
    case 2:
      value = oddString({}, random).substr(0, 100);
      break;
    case 3: { // of elsewhere
      const Json from = *all[pick(random, all.size())];
      if (from.dump(-1, ' ', false, Json::error_handler_t::replace).size() < 20000)
        value = from;
      break;
    }
    case 4:
      if (value.is_structured() && !value.empty())
        value.erase(std::next(value.begin(), int64_t(pick(random, value.size()))));
      break;
    case 5:
      if (value.is_array())
        value.push_back(*all[pick(random, all.size())]);
      break;
    case 6:
      value = pick(random, 2) ? Json() : Json::object();
      break;
    default:
      if (value.is_number_integer())
        value = value.get<int64_t>() + (pick(random, 2) ? 1 : -1);
      else if (value.is_boolean())
        value = !value.get<bool>();
      break;
    }
  }
}

void mutateJsonText(std::string &text, const std::vector<std::string> &, Random &random) {
  Json json = tc::parseJson(text.data(), text.size());
  if (json.is_discarded() || pick(random, 16) == 0)
    return mutateBytes(text, random);
  mutateJson(json, random);
  text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// An archive that torch.save wrote, inside of another.
void mutateSaved(std::string &bytes, Random &random) {
  Members members = readZip(bytes);
  if (members.empty())
    return mutateBytes(bytes, random);
  for (auto &[name, data] : members)
    if (llvm::StringRef(name).ends_with(".pkl"))
      mutatePickle(data, {data}, random);
    else if (pick(random, 16) == 0)
      mutateBytes(data, random);
  bytes = writeZip(members);
}

/// Operators and expressions of sizes of a program, which text seldom hits.
void mutateProgram(std::string &text, Random &random) {
  Json json = tc::parseJson(text.data(), text.size());
  std::vector<Json *> all, words;
  if (!json.is_discarded())
    collect(json, all);
  const bool isOperator = pick(random, 2) != 0;
  for (Json *value : all)
    if (value->is_string()) {
      const auto &word = value->get_ref<const std::string &>();
      if (isOperator == llvm::StringRef(word).starts_with("torch.ops."))
        words.push_back(value);
    }
  if (words.empty())
    return;
  Json &word = *words[pick(random, words.size())];
  if (isOperator)
    word = "torch.ops." + anyOperator(random);
  else if (pick(random, 2))
    word = sizeExpression(random);
  else
    word = Json(*words[pick(random, words.size())]);
  text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Sizes that are numbers become expressions of sizes.
void openSizes(std::string &text, Random &random) {
  Json json = tc::parseJson(text.data(), text.size());
  std::vector<Json *> all, sizes;
  if (!json.is_discarded())
    collect(json, all);
  for (Json *value : all)
    if (value->is_object() && value->size() == 1 && (value->contains("as_int") || value->contains("as_expr")))
      sizes.push_back(value);
  for (uint64_t n = sizes.empty() ? 0 : 1 + pick(random, 4); n--;)
    *sizes[pick(random, sizes.size())] = {
        {"as_expr", {{"expr_str", sizeExpression(random)}, {"hint", {{"as_int", 2}}}}}};
  text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void mutatePt2(std::string &bytes, const std::vector<std::string> &corpus, Random &random) {
  Members members = readZip(bytes);
  if (members.empty() || pick(random, 32) == 0)
    return mutateBytes(bytes, random);
  for (auto &[name, data] : members) {
    const llvm::StringRef member = name;
    if (member.contains("models/") || member.ends_with("program.json") ||
        (member.ends_with(".json") && pick(random, 4) == 0)) {
      const uint64_t way = pick(random, 4);
      way == 0   ? mutateProgram(data, random)
      : way == 1 ? openSizes(data, random)
                 : mutateJsonText(data, corpus, random);
    } else if (llvm::StringRef(data).starts_with("PK") && pick(random, 2) == 0)
      mutateSaved(data, random);
  }
  if (pick(random, 8) == 0) {
    auto &[name, data] = members[pick(random, members.size())];
    pick(random, 2) ? mutateBytes(name, random) : mutateBytes(data, random);
  }
  std::vector<bool> isDeflated(members.size());
  for (size_t i = 0; i < members.size(); ++i)
    isDeflated[i] = pick(random, 8) == 0;
  bytes = writeZip(members, isDeflated);
}

class Oracle : public tc::ValueOracle {
public:
  explicit Oracle(mlir::Operation *function) : types(mlir::cast<tc::graph::FuncOp>(function), {}) {}
  llvm::Expected<mlir::RankedTensorType> getType(mlir::Value value) override { return types.getType(value); }
  std::optional<int64_t> getInteger(mlir::Value value) override { return types.getInteger(value); }
  void forgetNumbers(mlir::Value value) override { types.forgetNumbers(value); }

private:
  tc::GraphTypes types;
};

/// The code of another archive of the corpus.
std::string codeOf(const std::string &bytes) {
  for (auto &[name, data] : readZip(bytes))
    if (llvm::StringRef(name).ends_with(".py"))
      return data;
  return "";
}

void mutatePt(std::string &bytes, const std::vector<std::string> &corpus, Random &random) {
  Members members = readZip(bytes);
  if (members.empty() || pick(random, 64) == 0)
    return mutateBytes(bytes, random);
  const std::string &other = corpus[pick(random, corpus.size())];
  bool isChanged = pick(random, 8) == 0;
  for (auto &[name, data] : members) {
    const bool isCode = llvm::StringRef(name).ends_with(".py"), isPickle = llvm::StringRef(name).ends_with(".pkl");
    if (isCode && (pick(random, 4) == 0 || !isChanged)) {
      mutateCode(data, codeOf(other), random);
      isChanged = true;
    } else if (isPickle && pick(random, 10) == 0) {
      mutatePickle(data, {data}, random);
    } else if (pick(random, 64) == 0) {
      mutateBytes(data, random);
    }
  }
  // Members that lack, come twice, have another name, or are another archive's.
  if (pick(random, 16) == 0) {
    const size_t at = pick(random, members.size());
    const Members donor = readZip(other);
    switch (pick(random, 4)) {
    case 0:
      members.erase(members.begin() + long(at));
      break;
    case 1:
      members.push_back(members[at]);
      break;
    case 2:
      mutateBytes(members[at].first, random);
      break;
    default:
      if (!donor.empty())
        members[at].second = donor[pick(random, donor.size())].second;
    }
  }
  std::vector<bool> isDeflated(members.size());
  for (size_t i = 0; i < members.size(); ++i)
    isDeflated[i] = pick(random, 8) == 0;
  bytes = writeZip(members, isDeflated);
}

/// Inputs by the size of the archive: ranks, element types, an open dim.
tc::TorchScriptOptions inputsOf(const std::string &bytes) {
  static const std::vector<int64_t> kShapes[] = {{2, 4},  {2, 4}, {2, 4}, {2, 3, 4}, {1, 2, 6, 6},
                                                 {-1, 4}, {},     {0, 4}, {8}};
  static const char *const kTypes[] = {"f32", "f32", "f32", "f32", "i64", "i1", "f16"};
  tc::TorchScriptInput input;
  input.sizes = kShapes[bytes.size() / 7 % std::size(kShapes)];
  for (int64_t size : input.sizes)
    input.names.push_back(size < 0 ? "n" : "");
  input.elementType = kTypes[bytes.size() % std::size(kTypes)];
  tc::TorchScriptOptions options;
  for (const char *name : {"x", "y", "input", "input_1"})
    options.inputs[name] = input;
  return options;
}

/// The answer of a reader of JSON.
Answer judge(llvm::Error error, std::string &why) {
  if (!error)
    return Answer::Taken;
  const std::string text = llvm::toString(std::move(error));
  if (text.find(": error: ") == std::string::npos)
    why = "no sentence: " + text;
  return why.empty() ? Answer::Refused : Answer::Wrong;
}

const std::map<std::string, Target> targets = {
    {"onnx",
     {mutateOnnx,
      [](const std::string &bytes, const std::string &path, std::string &why) {
        tc::ImportOptions options;
        options.inferShapes = bytes.size() % 64 == 0; // which forks, for hints alone
        return lower(tc::importOnnx(beginModel(), path, options), why);
      }}},
    {"pt2",
     {mutatePt2, [](const std::string &, const std::string &path,
                    std::string &why) { return lower(tc::importExportedProgram(beginModel(), path), why); }}},
    {"pt",
     {mutatePt,
      [](const std::string &bytes, const std::string &path, std::string &why) {
        tc::TorchScriptOptions options = inputsOf(bytes);
        options.makeOracle = [](mlir::Operation *function) { return std::make_unique<Oracle>(function); };
        return lower(tc::importTorchScript(beginModel(), path, options), why);
      }}},
    {"code",
     {[](std::string &text, const std::vector<std::string> &corpus, Random &random) {
        const std::string &donor = corpus[pick(random, corpus.size())];
        pick(random, 8) ? mutateCode(text, donor, random) : mutateBytes(text, random);
      },
      [](const std::string &text, const std::string &, std::string &why) {
        auto source = tc::torchscript::parseSource("model.py", text);
        if (source)
          return Answer::Taken;
        const std::string error = llvm::toString(source.takeError());
        if (!llvm::StringRef(error).starts_with("model.py:") || llvm::StringRef(error).contains('\n'))
          why = "no sentence: " + error;
        return why.empty() ? Answer::Refused : Answer::Wrong;
      }}},
    {"custom-op",
     {mutateJsonText,
      [](const std::string &, const std::string &path, std::string &why) {
        tc::CustomOperators operators;
        return judge(tc::readCustomOperators(path, operators), why);
      }}},
    {"tuning-db", {mutateJsonText, [](const std::string &, const std::string &path, std::string &why) {
                     std::string error;
                     if (tc::measure::Database::read(path, /*mayLack=*/false, error))
                       return judge(llvm::Error::success(), why);
                     return judge(llvm::createStringError(error), why);
                   }}}};

} // namespace

int main(int argc, char **argv) {
  return fuzzMain(argc, argv, [](const std::string &name) -> const Target * {
    auto it = targets.find(name);
    return it == targets.end() ? nullptr : &it->second;
  });
}
