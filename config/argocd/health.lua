-- Health of a Tenant in Argo CD. It agrees with kstatus, except that a paused Tenant is Suspended.
-- A suspended Tenant is Healthy: its desired state is applied.
local conditions = {}
local observed = nil
if obj.status ~= nil then
  observed = obj.status.observedGeneration
  if obj.status.conditions ~= nil then
    for _, condition in ipairs(obj.status.conditions) do
      conditions[condition.type] = condition
    end
  end
end

local function has(name)
  return conditions[name] ~= nil and conditions[name].status == "True"
end

local function result(status, name, default)
  local message = default
  if conditions[name] ~= nil and conditions[name].message ~= nil then
    message = conditions[name].message
  end
  return {status = status, message = message}
end

if obj.metadata.deletionTimestamp ~= nil then
  return result("Progressing", "Ready", "being deleted")
end
if has("Paused") then
  return result("Suspended", "Paused", "paused")
end
if observed ~= obj.metadata.generation then
  return {status = "Progressing", message = "waiting for the operator to observe the spec"}
end
if has("Stalled") then
  return result("Degraded", "Stalled", "stalled")
end
if has("Reconciling") then
  return result("Progressing", "Reconciling", "reconciling")
end
if has("Ready") then
  return result("Healthy", "Ready", "ready")
end
return result("Progressing", "Ready", "waiting for the operator")
